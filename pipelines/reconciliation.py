"""The reconciliation, from the sources to the totals, for `python -m pipelines reconcile`."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.judging.classes import NEEDS_STORE, Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.events import all_events, event_rows, inbox_event_table, inbox_rows, markers
from pipelines.judging.history import KEY
from pipelines.judging.judge import FINDING_COLUMNS, findings_of, histories_of, judged
from pipelines.judging.log_events import log_events
from pipelines.judging.log_gaps import with_unjudged
from pipelines.judging.route import Progress, Route
from pipelines.judging.rules import KnownRepairs
from pipelines.judging.table_events import CREDIT_EVENTS, ITEM_EVENTS, ORDER_EVENTS, TRANSACTION_EVENTS
from pipelines.judging.totals import FindingTotal, summed, summed_here, totals_of
from pipelines.outputs import write_outputs
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.tables import (
    CREDITS,
    ORDER_ITEMS,
    ORDERS,
    TRANSACTIONS,
    count_markers,
    read_inbox,
    read_markers,
    read_table,
    read_unreadable_values,
    read_wrong_balances,
)
from pipelines.sources.logs.message_logs import MessageLog, StoreLog
from pipelines.sources.reading import Reading

PERIOD_MS: Final = 60_000
MAX_BROADCAST: Final = 1_000_000
"""The maximum number of ROLLED_BACK markers, about 100 MB, that are broadcast to each task."""


@dataclass(frozen=True, slots=True)
class Books:
    """The sources to compare: two databases and optionally the commit logs of the brokers."""

    order_database: DatabaseAddress
    credit_database: DatabaseAddress
    stores: tuple[Path, ...] = ()
    route: Route = field(default_factory=Route)
    brokers: tuple[str, ...] = ()
    """The addresses, HOST:PORT, of the brokers to pull messages from."""
    read_repairs: Callable[[], KnownRepairs] | None = None
    """A function that reads the accepted repairs at each run. If it is None, all repairs are accepted."""

    def known_repairs(self) -> KnownRepairs | None:
        """Returns the accepted repairs, or None for all. Raises UnreadableAudit."""
        return None if self.read_repairs is None else self.read_repairs()

    @property
    def logs(self) -> tuple[MessageLog, ...]:
        """The commit logs to read, from stores and from brokers."""
        stores = tuple(map(StoreLog, self.stores))
        if not self.brokers:
            return stores
        # Imported here because the client's import takes a quarter of a second, and only `brokers` need it.
        from pipelines.sources.logs.pulled_log import BrokerLog

        return (*stores, *map(BrokerLog, self.brokers))


@dataclass(frozen=True, slots=True)
class ReconciliationOutcome:
    """The outcome of a reconciliation, with rows of `totals.summed` and their sums."""

    totals: list[FindingTotal]
    rows: list[dict[str, Any]]


def reconcile(reading: Reading, books: Books, cut_off: CutOff, output: str) -> ReconciliationOutcome:
    """Compares the sources. Writes Parquet to `output`/findings and `output`/summary. Returns totals in the order of `Finding`.

    Raises UnreadableStore, UnreadableDatabase, UnreadableAudit and UnwritableOutput, and Spark's errors if a source fails later.
    """
    # The offsets are read first, then the inbox, so that each acknowledged message is in the inbox or in the ledger.
    progress = [progress_of(log, books.route) for log in books.logs]
    with ThreadPoolExecutor(1) as beside:
        # This SQL reads all rows. It runs while Spark works, so that it adds no time.
        of_tables = beside.submit(lambda: table_findings(books, read_wrong_balances(books.credit_database), progress))
        of_orders = reading.rows(summed(find(reading, books, cut_off, progress), PERIOD_MS))
        rows = [*of_orders, *summed_here(of_tables.result(), PERIOD_MS)]
    return written_outcome(rows, books, cut_off, output)


def written_outcome(rows: list[dict[str, Any]], books: Books, cut_off: CutOff, output: str) -> ReconciliationOutcome:
    """Writes these rows of `totals.summed` to `output`. Returns the outcome. Raises UnwritableOutput."""
    rows = with_unjudged(rows, cut_off)
    totals = totals_of(rows, kinds_of(books))
    write_outputs(rows, totals, cut_off, output)
    return ReconciliationOutcome(totals, rows)


def kinds_of(books: Books) -> tuple[Finding, ...]:
    """Returns the classes that can be found with these sources."""
    return tuple(kind for kind in Finding if (books.logs or kind not in NEEDS_STORE) and kind is not Finding.UNCLASSIFIED)


def find(reading: Reading, books: Books, cut_off: CutOff, progress: Sequence[Progress]) -> DataFrame:
    """Returns the findings about all orders, including healthy ones. `progress` has an entry for each log."""
    inbox = inbox_of(reading, books)
    repairs = books.known_repairs()
    # Items are read before orders: an order that is placed in between must not appear without its items.
    items = read_table(reading, books.order_database, ORDER_ITEMS)
    transactions = read_table(reading, books.order_database, TRANSACTIONS)
    events = [
        event_rows(items, ITEM_EVENTS),
        event_rows(transactions, TRANSACTION_EVENTS),
        event_rows(read_table(reading, books.order_database, ORDERS), ORDER_EVENTS),
        event_rows(read_table(reading, books.credit_database, CREDITS), CREDIT_EVENTS),
        *([] if inbox is None else [inbox]),
        *(
            log_events(reading.together(log.records(reading)), books.route, offsets)
            for log, offsets in zip(books.logs, progress, strict=True)
        ),
    ]
    # Each source has one or two events of an order, so that pre-aggregating them would cost more than it saves.
    histories = histories_of(reading.together(all_events(events), *KEY), _marked(reading, books, transactions))
    return findings_of(judged(histories, cut_off, log_begins_ms(books.logs, books.route), repairs))


def inbox_of(reading: Reading, books: Books) -> DataFrame | None:
    """Reads the credit service's inbox now and returns its events, or None without rows. Raises UnreadableDatabase."""
    events = inbox_event_table(read_inbox(books.credit_database), books.route)
    return inbox_rows(reading.together(reading.spark.createDataFrame(events))) if events.num_rows else None


def _marked(reading: Reading, books: Books, transactions: DataFrame) -> DataFrame | None:
    """Returns the ROLLED_BACK markers, or None if there are none. They are broadcast, unless there are too many.

    With a broadcast, histories are not sorted again for this join, and transactions are not read twice.
    """
    count = count_markers(books.order_database)
    if count > MAX_BROADCAST:
        return markers(transactions)
    few = read_markers(books.order_database) if count else None
    if few is None or not few.num_rows:
        return None
    marked = reading.spark.createDataFrame(few)
    return reading.together(marked) if reading.is_small else F.broadcast(marked)


def log_begins_ms(logs: tuple[MessageLog, ...], route: Route) -> int | None:
    """Returns the time in milliseconds since which the commit logs are complete. 0 means that no segment was deleted.

    Returns None without a log. Raises UnreadableStore.
    """
    return max((log.begins_ms(route.topic) for log in logs), default=None)


def progress_of(log: MessageLog, route: Route) -> Progress:
    """Returns the consumer group's offsets in the topics of the route. Raises UnreadableStore."""
    return {topic: log.consumer_offsets(route.consumer_group, topic) for topic in route.consumed_topics}


def table_findings(books: Books, wrong_balances: pyarrow.Table, progress: Sequence[Progress]) -> list[dict[str, Any]]:
    """Returns a row with FINDING_COLUMNS for each wrong balance, unreadable value, and lost end of a log.

    `progress` has an entry for each log. The column `points` of a wrong balance is the sum of the ledger's entries.
    Raises UnreadableDatabase and UnreadableStore.
    """
    lost = [
        {"finding": Finding.LOG_GAP.value, "stage": "unknown", "transaction_id": text}
        for log, offsets in zip(books.logs, progress, strict=True)
        for text in log.lost_ends(offsets)
    ]
    values = [
        {"finding": Finding.UNREADABLE_VALUE.value, "stage": "unknown", "transaction_id": text}
        for text in read_unreadable_values(books.order_database, books.credit_database)
    ]
    rows: list[Mapping[str, object]] = [*map(_balance_finding, wrong_balances.to_pylist()), *values, *lost]
    return [{name: row.get(name) for name in FINDING_COLUMNS} for row in rows]


def _balance_finding(row: Mapping[str, Any]) -> dict[str, object]:
    is_missing = row["balances"] == 0
    return {
        "finding": Finding.MISSING_BALANCE.value if is_missing else Finding.BALANCE_MISMATCH.value,
        "cause": Cause.LEDGER_SUM.value,
        "stage": "credited",
        "customer": row["customer"],
        "points": row["points"],
        "balance": None if is_missing else row["balance"],
    }
