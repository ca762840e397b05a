"""Computes high-water marks, which delimit the part of each source that later runs do not read again.

Rows above a mark are read again by the next run. A mark is below all rows that are younger than the grace period, because a
database assigns row ids before it commits, so that a row with a lower id may become visible later. Records of a commit log never
change, so their mark is the last record that was read.
"""

from pathlib import Path
from typing import Final

import msgspec

from order_messages.states import OrderState, TransactionState
from pipelines.errors import StateUnusable
from pipelines.judging.cut_off import CutOff
from pipelines.sources.databases.adbc import is_whole_key, read_query
from pipelines.sources.databases.database_address import DatabaseAddress
from rocketmq_commitlog.commit_log import first_record, last_record

NOTHING: Final = -1
_HIGHEST_ID: Final = 2**63 - 1


class Marks(msgspec.Struct, frozen=True):
    """The marks of all sources: ids of rows, times of transaction rows, and offsets of records.

    The end of an order changes a row below the mark. Therefore ended orders, like transactions, are selected by time.
    """

    orders: int = 0
    items: int = 0
    credits: int = 0
    transactions_ms: int = NOTHING
    ended_ms: int = NOTHING
    records: dict[str, int] = {}
    """Maps each store directory to the commit log offset of the last record that was read."""


def next_marks(
    before: Marks, order_database: DatabaseAddress, credit_database: DatabaseAddress, stores: tuple[Path, ...], cut_off: CutOff
) -> Marks:
    """Returns the marks of this run.

    Raises UnreadableDatabase, UnreadableStore, and StateUnusable if a source lost rows.
    """
    # Orders that await their payment count as young, because they and their transactions change later.
    is_young = f"(created_at_ms > {cut_off.judged_until_ms} OR state = '{OrderState.AWAITING_PAYMENT}')"
    orders = _mark(order_database, "orders", before.orders, is_young)
    young_item = f"order_id IN (SELECT order_id FROM orders WHERE id > {orders})"
    return Marks(
        orders,
        _mark(order_database, "order_items", before.items, young_item),
        _mark(credit_database, "credits", before.credits, f"created_at_ms > {cut_off.judged_until_ms}"),
        _transactions_ms(order_database, before.transactions_ms, cut_off.judged_until_ms),
        max(before.ended_ms, cut_off.judged_until_ms),
        {str(store): _last_offset(store, before.records.get(str(store), NOTHING)) for store in stores},
    )


def _transactions_ms(address: DatabaseAddress, before_ms: int, judged_until_ms: int) -> int:
    """Returns the time just before the first transaction row that may still change."""
    chosen = f"created_at_ms > {before_ms} AND state = '{TransactionState.PENDING}'"
    query = f"SELECT CAST(MIN(created_at_ms) AS BIGINT) AS first_ms FROM transactions WHERE {chosen}"
    first_ms = read_query(address, query).to_pylist()[0]["first_ms"]
    until_ms = judged_until_ms if first_ms is None else min(judged_until_ms, int(first_ms) - 1)
    return max(before_ms, until_ms)


def _mark(address: DatabaseAddress, table: str, before: int, is_young: str) -> int:
    """Returns the highest id below the first young row. Raises StateUnusable if the ids are not integers."""
    if not is_whole_key(address, table, "id"):
        raise StateUnusable(
            f"database {address.name}: the ids of {table} are not integers, which --state requires; "
            "run without --state to read everything"
        )
    first_young = f"SELECT MIN(id) FROM {table} WHERE id > {before} AND {is_young}"
    query = (
        f"SELECT COALESCE(MAX(CASE WHEN id < COALESCE(({first_young}), {_HIGHEST_ID}) THEN id END), {before}) AS mark, "
        f"COALESCE(MAX(id), 0) AS last FROM {table} WHERE id >= {before}"
    )
    row = read_query(address, query).to_pylist()[0]
    if int(row["last"]) < before:
        raise StateUnusable(f"database {address.name}: {table} ends before row {before}, which was read before; use --full")
    return int(row["mark"])


def _last_offset(store: Path, before: int) -> int:
    first, last = first_record(store), last_record(store)
    first_offset = NOTHING if first is None else first.commit_log_offset
    last_offset = NOTHING if last is None else last.commit_log_offset
    if last_offset < before:
        raise StateUnusable(f"store {store}: the commit log ends before offset {before}, which was read before; use --full")
    if before != NOTHING and first_offset > before:
        raise StateUnusable(f"store {store}: records after offset {before} expired before they were read; use --full")
    return last_offset
