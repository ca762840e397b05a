"""High-water marks: the part of each source that is read for good.

The next run reads rows above a mark again, and keeps nothing of their first reading. So a mark lies below all rows younger than
the grace period: a database assigns row ids before it commits the rows, and one with a lower id may become visible later. Records
of a commit log never change: all that were read are kept.
"""

from __future__ import annotations

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
    """The part read for good: rows up to these ids, transaction rows up to this time, and records up to these offsets.

    The end of an order changes its row below the mark: it is read by its time, as transactions are.
    """

    orders: int = 0
    items: int = 0
    credits: int = 0
    transactions_ms: int = NOTHING
    ended_ms: int = NOTHING
    records: dict[str, int] = {}
    """By store directory, the commit log offset of the last record that was read."""


def next_marks(
    before: Marks, order_database: DatabaseAddress, credit_database: DatabaseAddress, stores: tuple[Path, ...], cut_off: CutOff
) -> Marks:
    """Returns the marks that this run reaches.

    Raises UnreadableDatabase, UnreadableStore, and StateUnusable if a source lost rows, read or unread.
    """
    # An order that awaits its payment, and its transaction, change later: they count as young.
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
    """Returns the time just below the first transaction row that will change."""
    chosen = f"created_at_ms > {before_ms} AND state = '{TransactionState.PENDING}'"
    query = f"SELECT CAST(MIN(created_at_ms) AS BIGINT) AS first_ms FROM transactions WHERE {chosen}"
    first_ms = read_query(address, query).to_pylist()[0]["first_ms"]
    until_ms = judged_until_ms if first_ms is None else min(judged_until_ms, int(first_ms) - 1)
    return max(before_ms, until_ms)


def _mark(address: DatabaseAddress, table: str, before: int, is_young: str) -> int:
    """Returns the highest id below the first young row. Raises StateUnusable unless ids are whole numbers."""
    if not is_whole_key(address, table, "id"):
        raise StateUnusable(
            f"database {address.name}: the ids of {table} are not whole numbers, by which --state knows what is new: "
            "leave --state out, and everything is read"
        )
    first_young = f"SELECT MIN(id) FROM {table} WHERE id > {before} AND {is_young}"
    query = (
        f"SELECT COALESCE(MAX(CASE WHEN id < COALESCE(({first_young}), {_HIGHEST_ID}) THEN id END), {before}) AS mark, "
        f"COALESCE(MAX(id), 0) AS last FROM {table} WHERE id >= {before}"
    )
    row = read_query(address, query).to_pylist()[0]
    if int(row["last"]) < before:
        raise StateUnusable(f"database {address.name}: {table} ends before row {before}, which was read: use --full")
    return int(row["mark"])


def _last_offset(store: Path, before: int) -> int:
    first, last = first_record(store), last_record(store)
    first_offset = NOTHING if first is None else first.commit_log_offset
    last_offset = NOTHING if last is None else last.commit_log_offset
    if last_offset < before:
        raise StateUnusable(f"store {store}: the commit log ends before offset {before}, which was read: use --full")
    if before != NOTHING and first_offset > before:
        raise StateUnusable(f"store {store}: records behind offset {before} have expired unread: use --full")
    return last_offset
