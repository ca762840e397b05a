"""Reconciles small databases and logs without Spark. This process reads the sources, and SQLite runs the same rules as Spark.

The result is the same as Spark's; `tests/component/pipelines/test_embedded.py` checks both with the same data. Sources that are
too large for one process are refused, and so are sums of more than 64 bits, which SQLite cannot compute.
"""

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from pipelines.errors import EngineUnfit
from pipelines.judging.cut_off import CutOff
from pipelines.judging.judge import FINDING_COLUMNS
from pipelines.judging.totals import summed_here
from pipelines.judging.without_spark.auditing import with_names
from pipelines.judging.without_spark.record_events import events_of_rows
from pipelines.judging.without_spark.sqlite_judge import Event, judge
from pipelines.judging.without_spark.table_events import TableRows
from pipelines.reconciliation import (
    PERIOD_MS,
    Books,
    ReconciliationOutcome,
    log_begins_ms,
    progress_of,
    table_findings,
    written_outcome,
)
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.database_source import TableSource
from pipelines.sources.databases.tables import (
    CREDITS,
    ORDER_ITEMS,
    ORDERS,
    TRANSACTIONS,
    Table,
    options_of,
    read_inbox,
    read_markers,
    read_wrong_balances,
)
from pipelines.sources.logs.message_logs import COLUMNS, options_of_store
from pipelines.sources.reading import read_here, schema_of
from rocketmq_commitlog.source import CommitLogSource

_TOO_WIDE: Final = "SQLite cannot compute sums of more than 64 bits; use --engine spark"
_BEYOND: Final = 2**63
_MIN_SQLITE: Final = (3, 35, 0)
"""The minimum version of SQLite. It is the first one with MATERIALIZED, which the rules use."""

Row = dict[str, Any]


def reconcile_embedded(books: Books, cut_off: CutOff, output: str) -> ReconciliationOutcome:
    """Compares the sources like `reconcile`, and writes the same outputs.

    Raises UnreadableStore, UnreadableDatabase, UnreadableAudit, UnwritableOutput, and EngineUnfit for sources that need Spark.
    """
    if sqlite3.sqlite_version_info < _MIN_SQLITE:
        raise EngineUnfit(
            f"this Python has SQLite {sqlite3.sqlite_version}, but the embedded engine requires "
            f"{'.'.join(map(str, _MIN_SQLITE))} or newer; use --engine spark"
        )
    if books.brokers:
        raise EngineUnfit("the embedded engine cannot pull messages from a --broker; use --engine spark, or --store")
    try:
        found = _found(books, cut_off)
    except (OverflowError, sqlite3.Error) as error:
        raise EngineUnfit(f"{_TOO_WIDE} ({error})") from None
    return written_outcome(summed_here(found, PERIOD_MS), books, cut_off, output)


def _found(books: Books, cut_off: CutOff) -> list[Mapping[str, Any]]:
    """Returns one row with FINDING_COLUMNS for each finding."""
    # The offsets are read first, then the inbox, so that each acknowledged message is in the inbox or in the ledger.
    progress = [progress_of(log, books.route) for log in books.logs]
    inbox = tuple(row for batch in read_inbox(books.credit_database) for row in batch.to_pylist())
    of_tables = table_findings(books, read_wrong_balances(books.credit_database), progress)
    repairs = books.known_repairs()
    # Items are read before orders: an order that is placed in between must not appear without its items.
    items = _rows(books.order_database, ORDER_ITEMS)
    transactions = _rows(books.order_database, TRANSACTIONS)
    orders = _rows(books.order_database, ORDERS)
    tables = TableRows(orders, items, transactions, _rows(books.credit_database, CREDITS), inbox=inbox)
    events: list[Event] = [*tables.events(books.route)]
    for store, offsets in zip(books.stores, progress, strict=True):
        records = read_here(CommitLogSource, options_of_store(store), schema_of(COLUMNS)).to_pylist()
        events += events_of_rows(records, books.route, offsets)
    markers = read_markers(books.order_database).column("marked_transaction_id").to_pylist()
    judged = judge(events, cut_off, log_begins_ms(books.logs, books.route), markers, repairs=repairs)
    return [*map(_finding, judged), *of_tables]


def _rows(address: DatabaseAddress, table: Table) -> tuple[Row, ...]:
    return tuple(read_here(TableSource, options_of(address, table), schema_of(table.columns)).to_pylist())


def _finding(judged: Row) -> Row:
    named = with_names(judged)
    named |= {"order_count": judged["order_rows"], "credit_count": judged["credit_rows"], "balance": None}
    named |= {name: _whole(named[name]) for name in ("credit_cents", "at_stake_cents")}
    return {name: named[name] for name in FINDING_COLUMNS}


def _whole(cents: float | None) -> int | None:
    """Returns the amount, or None if it exceeds 64 bits, like Spark's try_cast. Raises OverflowError if SQLite rounded it.

    SQLite continues with a rounded number if a sum or a difference leaves the range of integers.
    """
    if cents is None or isinstance(cents, int):
        return cents
    if abs(cents) < _BEYOND:
        raise OverflowError(f"SQLite rounded an amount to {cents}")
    return None
