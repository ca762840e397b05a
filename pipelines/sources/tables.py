"""The services' tables as DataFrames: the columns that the reconciliation needs, and no others."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from pipelines.sources.adbc import check_table
from pipelines.sources.database_address import DatabaseAddress
from pipelines.sources.database_source import TableSource


@dataclass(frozen=True, slots=True)
class Table:
    """A table to read: its integer key, if it has one, and the columns wanted with their Spark types."""

    name: str
    key: str | None
    columns: dict[str, str]
    not_null: tuple[str, ...] = ()
    """Rows where one of these is NULL are of no interest."""

    @property
    def schema(self) -> str:
        """The columns as Spark's DDL."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns.items())


ORDERS = Table("orders", "id", {"order_id": "string", "customer": "string", "total_cents": "bigint", "created_at_ms": "bigint"})
TRANSACTIONS = Table("transactions", None, {"order_id": "string", "state": "string"}, not_null=("order_id",))
CREDITS = Table(
    "credits",
    "id",
    {
        "order_id": "string",
        "customer": "string",
        "points": "bigint",
        "amount_cents": "bigint",
        "created_at_ms": "bigint",
    },
)


def check_tables(order_database: DatabaseAddress, credit_database: DatabaseAddress) -> None:
    """Returns if all that is needed can be read. Raises UnreadableDatabase."""
    for address, table in ((order_database, ORDERS), (order_database, TRANSACTIONS), (credit_database, CREDITS)):
        check_table(address, table.name, [*([table.key] if table.key else []), *table.columns])


def read_table(spark: SparkSession, address: DatabaseAddress, table: Table) -> DataFrame:
    """The table, read when the DataFrame is used. TableSource must be registered with the session."""
    reader = spark.read.format(TableSource.name()).options(**address.to_options()).option("table", table.name)
    if table.key:
        reader = reader.option("key", table.key)
    if table.not_null:
        reader = reader.option("notNull", ",".join(table.not_null))
    return reader.schema(table.schema).load()
