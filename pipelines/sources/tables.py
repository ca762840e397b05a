"""The services' tables as DataFrames: the columns that the reconciliation needs, and no others."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow
from pyspark.sql import DataFrame

from pipelines.sources.adbc import check_table, read_query
from pipelines.sources.database_address import DatabaseAddress, Driver
from pipelines.sources.database_source import TableSource
from pipelines.sources.key_ranges import Since
from pipelines.sources.reading import Reading


@dataclass(frozen=True, slots=True)
class Table:
    """A table to read: its integer key, if it has one, and the columns wanted with their Spark types."""

    name: str
    key: str | None
    columns: dict[str, str]
    nullable: tuple[str, ...] = ()
    """Text that may be NULL."""


ORDERS = Table(
    "orders",
    "id",
    {
        "order_id": "string",
        "customer": "string",
        "total_cents": "bigint",
        "currency": "string",
        "state": "string",
        "created_at_ms": "bigint",
        "pay_until_ms": "bigint",
        "paid_at_ms": "bigint",
        "ended_at_ms": "bigint",
    },
)
ORDER_ITEMS = Table("order_items", "id", {"order_id": "string", "name": "string", "quantity": "bigint", "price_cents": "bigint"})
TRANSACTIONS = Table(
    "transactions",
    None,
    {"transaction_id": "string", "order_id": "string", "kind": "string", "state": "string", "created_at_ms": "bigint"},
    nullable=("order_id",),
)
CREDITS = Table(
    "credits",
    "id",
    {
        "order_id": "string",
        "kind": "string",
        "customer": "string",
        "points": "bigint",
        "amount_cents": "bigint",
        "message_id": "string",
        "transaction_id": "string",
        "created_at_ms": "bigint",
    },
    nullable=("transaction_id",),
)
BALANCES = Table("balances", None, {"customer": "string", "points": "bigint"})

WRONG_BALANCES = """
    SELECT customer, CAST(SUM(points) AS BIGINT) AS points, CAST(SUM(balance) AS BIGINT) AS balance,
           CAST(SUM(balances) AS BIGINT) AS balances
    FROM (SELECT customer, points, 0 AS balance, 0 AS balances FROM credits
          UNION ALL SELECT customer, 0, points, 1 FROM balances) AS entries
    GROUP BY customer HAVING SUM(points) <> SUM(balance) OR SUM(balances) <> 1"""
"""Customers whose balance is not the sum of their entries. One statement sees both tables at one moment, so a running system is
never reported falsely: the credit service changes both in one database transaction."""

_QUOTE = "'"


def check_tables(order_database: DatabaseAddress, credit_database: DatabaseAddress) -> None:
    """Returns if all that is needed can be read. Raises UnreadableDatabase."""
    of_orders, of_credits = (ORDERS, ORDER_ITEMS, TRANSACTIONS), (CREDITS, BALANCES)
    for address, table in [(order_database, table) for table in of_orders] + [(credit_database, table) for table in of_credits]:
        check_table(address, table.name, [*([table.key] if table.key else []), *table.columns])


def read_table(reading: Reading, address: DatabaseAddress, table: Table, since: Since | None = None) -> DataFrame:
    """The table as a DataFrame, or what is new in it with the column that tells.

    Raises UnreadableDatabase, or Spark does when the DataFrame is used.
    """
    options = address.to_options() | {"table": table.name}
    if key := table.key or ("rowid" if address.driver is Driver.SQLITE else None):
        options["key"] = key
    if table.nullable:
        options["nullable"] = ",".join(table.nullable)
    if since is None:
        return reading.frame(TableSource, options, table.columns)
    options |= {"sinceColumn": since.column, "since": str(since.value)}
    return reading.frame(TableSource, options, {**table.columns, since.column: "bigint"})


def read_wrong_balances(address: DatabaseAddress, since_id: int | None = None, also: Iterable[str] = ()) -> pyarrow.Table:
    """Customer, points, balance and number of balance rows, of each whose balance is not right. Raises UnreadableDatabase.

    With `since_id` only customers are looked at who have newer credits, and those in `also`.
    """
    if since_id is None:
        return read_query(address, WRONG_BALANCES)
    chosen = f"customer IN (SELECT customer FROM credits WHERE id > {since_id:d})"
    if named := ", ".join(f"'{customer.replace(_QUOTE, 2 * _QUOTE)}'" for customer in also):
        chosen += f" OR customer IN ({named})"
    return read_query(address, WRONG_BALANCES.replace("AS entries", f"AS entries WHERE {chosen}"))


def read_markers(address: DatabaseAddress) -> pyarrow.Table:
    """The transactions that were rolled back without naming their order: marked_transaction_id, markers (1).

    Raises UnreadableDatabase.
    """
    query = "SELECT transaction_id AS marked_transaction_id, 1 AS markers FROM transactions"
    return read_query(address, f"{query} WHERE order_id IS NULL AND state = 'ROLLED_BACK'")


def count_markers(address: DatabaseAddress) -> int:
    """How many transaction rows name no order. Raises UnreadableDatabase."""
    return int(read_query(address, "SELECT COUNT(*) AS markers FROM transactions WHERE order_id IS NULL")[0][0].as_py())
