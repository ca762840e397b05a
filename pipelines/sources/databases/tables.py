"""Reads the services' tables as DataFrames, with the columns that the reconciliation needs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
from pyspark.sql import DataFrame

from order_messages.states import TransactionState
from pipelines.sources.databases.adbc import (
    ROWID,
    check_table,
    has_table,
    is_whole_key,
    known_columns,
    read_query,
    read_unreadable,
)
from pipelines.sources.databases.column_values import NUMBER, readable
from pipelines.sources.databases.database_address import DatabaseAddress, Driver
from pipelines.sources.databases.database_source import TableSource
from pipelines.sources.databases.key_ranges import Since
from pipelines.sources.reading import Reading, schema_of


@dataclass(frozen=True, slots=True)
class Table:
    """A table, its integer key (if it has one), and the columns to read with their Spark types."""

    name: str
    key: str | None
    columns: dict[str, str]
    nullable: tuple[str, ...] = ()
    """The names of the columns that may be NULL."""

    def key_at(self, address: DatabaseAddress) -> str | None:
        """Returns the integer column that identifies the rows in this database, or None.

        Raises UnreadableDatabase.
        """
        key = self.key or (ROWID if address.driver is Driver.SQLITE else None)
        return key if key is not None and is_whole_key(address, self.name, key) else None


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
    nullable=("pay_until_ms", "paid_at_ms", "ended_at_ms"),
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
INBOX = Table(
    "rocketmq_inbox",
    None,
    {
        "consumer": "string",
        "message_key": "string",
        "topic": "string",
        "body": "binary",
        "properties": "string",
        "status": "string",
        "received_at_ms": "bigint",
        "last_error": "string",
    },
    nullable=("last_error",),
)
"""The messages that the credit service has acknowledged but not processed yet. Older versions do not have this table."""

_WRONG_BALANCES: Final = """
    SELECT customer, SUM(points_high) AS points_high, SUM(points_low) AS points_low, SUM(balance_high) AS balance_high,
           SUM(balance_low) AS balance_low, SUM(balances) AS balances
    FROM (SELECT {customer} AS customer, {points} >> 32 AS points_high, {points} & 4294967295 AS points_low,
                 0 AS balance_high, 0 AS balance_low, 0 AS balances FROM credits {chosen}
          UNION ALL SELECT {customer}, 0, 0, {points} >> 32, {points} & 4294967295, 1 FROM balances {chosen}) AS entries
    GROUP BY customer
    HAVING SUM(balances) <> 1
        OR (SUM(points_high) - SUM(balance_high)) * 4294967296.0 + (SUM(points_low) - SUM(balance_low)) <> 0"""
"""The query for customers whose balance is not the sum of their entries.

The query is a single statement, so it reads a consistent snapshot of both tables. The credit service changes both in one database
transaction, so there are no false reports while it runs. The high and low halves of each number are summed separately, because a
sum may exceed 64 bits.
"""

_GREATEST: Final = 2**63 - 1

_OF_ORDERS: Final = (ORDERS, ORDER_ITEMS, TRANSACTIONS)
_OF_CREDITS: Final = (CREDITS, BALANCES)
_QUOTE = "'"


def check_tables(order_database: DatabaseAddress, credit_database: DatabaseAddress) -> None:
    """Raises UnreadableDatabase if a table cannot be read."""
    for address, table in _all_tables(order_database, credit_database):
        check_table(address, table.name, [*([table.key] if table.key else []), *table.columns])


def read_unreadable_values(order_database: DatabaseAddress, credit_database: DatabaseAddress) -> list[str]:
    """Returns a text for each value that does not have its column's type, with table and row. Raises UnreadableDatabase."""
    return [
        value
        for address, table in _all_tables(order_database, credit_database)
        for value in read_unreadable(address, table.name, table.columns, table.key_at(address), table.nullable)
    ]


def _all_tables(order_database: DatabaseAddress, credit_database: DatabaseAddress) -> list[tuple[DatabaseAddress, Table]]:
    of_credits = (*_OF_CREDITS, INBOX) if has_table(credit_database, INBOX.name) else _OF_CREDITS
    return [(order_database, table) for table in _OF_ORDERS] + [(credit_database, table) for table in of_credits]


def read_table(reading: Reading, address: DatabaseAddress, table: Table, since: Since | None = None) -> DataFrame:
    """Returns the table as a DataFrame, or only the rows that `since` selects.

    Raises UnreadableDatabase. Spark may also raise it later.
    """
    options = options_of(address, table)
    if since is None:
        return reading.frame(TableSource, options, table.columns)
    options |= {"sinceColumn": since.column, "since": str(since.value)}
    return reading.frame(TableSource, options, {**table.columns, since.column: "bigint"})


def read_inbox(address: DatabaseAddress) -> Iterator[pyarrow.RecordBatch]:
    """Yields the rows of INBOX, or nothing if the database does not have the table. Raises UnreadableDatabase.

    Call this after the consumer group's offsets are read and before the ledger is read. Each acknowledged message is then in the
    inbox or in the ledger, or in both if it is processed in between. Spark may read tables later and in any order, so this
    process reads the rows.
    """
    if has_table(address, INBOX.name):
        reader = TableSource(options_of(address, INBOX)).reader(schema_of(INBOX.columns))
        for partition in reader.partitions():
            yield from reader.read(partition)


def options_of(address: DatabaseAddress, table: Table) -> dict[str, str]:
    """Returns the options of TableSource for the table."""
    options = address.to_options() | {"table": table.name}
    if key := table.key_at(address):
        options["key"] = key
    if table.nullable:
        options["nullable"] = ",".join(table.nullable)
    return options


def read_wrong_balances(address: DatabaseAddress, since_id: int | None = None, also: Iterable[str] = ()) -> pyarrow.Table:
    """Returns customer, points, balance and the number of balance rows for each wrong balance. Raises UnreadableDatabase.

    `since_id` limits the search to customers with newer credits and the customers in `also`.
    """
    chosen = ""
    if since_id is not None:
        chosen = f"WHERE customer IN (SELECT customer FROM credits WHERE id > {since_id:d})"
        if named := ", ".join(f"'{customer.replace(_QUOTE, 2 * _QUOTE)}'" for customer in also):
            chosen += f" OR customer IN ({named})"
    customer = readable(address.driver, "customer", "string", is_nullable=False)
    number = {"points": NUMBER}
    is_known = all("points" in known_columns(address, table.name, number) for table in _OF_CREDITS)
    points = f"COALESCE({readable(address.driver, 'points', NUMBER, is_nullable=False, is_known=is_known)}, 0)"
    rows = read_query(address, _WRONG_BALANCES.format(customer=customer, points=points, chosen=chosen)).to_pylist()
    return pyarrow.Table.from_pylist([_wrong_balance(row) for row in rows], _WRONG_BALANCE)


_WRONG_BALANCE: Final = pyarrow.schema(
    [("customer", pyarrow.string()), *[(name, pyarrow.int64()) for name in ("points", "balance", "balances")]]
)


def _wrong_balance(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "customer": row["customer"],
        "points": _sum(row["points_high"], row["points_low"]),
        "balance": _sum(row["balance_high"], row["balance_low"]),
        "balances": int(row["balances"]),
    }


def _sum(high: Any, low: Any) -> int:
    """Joins the two halves of a number, clamped to the range of the column."""
    return max(-_GREATEST - 1, min(int(high) * 2**32 + int(low), _GREATEST))


def read_markers(address: DatabaseAddress) -> pyarrow.Table:
    """Returns the markers: ROLLED_BACK rows without an order. Columns: marked_transaction_id, markers (1).

    Raises UnreadableDatabase.
    """
    transaction_id = readable(address.driver, "transaction_id", "string", is_nullable=False)
    query = f"SELECT {transaction_id} AS marked_transaction_id, 1 AS markers FROM transactions"
    return read_query(address, f"{query} WHERE order_id IS NULL AND state = '{TransactionState.ROLLED_BACK}'")


def count_markers(address: DatabaseAddress) -> int:
    """Returns the number of transaction rows without an order. Raises UnreadableDatabase."""
    return int(read_query(address, "SELECT COUNT(*) AS markers FROM transactions WHERE order_id IS NULL")[0][0].as_py())
