"""Runs a reconciliation for a command. Starts Spark with settings for the size of the sources, and measures the time."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from pipelines.commands.arguments import EVERYTHING, IncrementOptions, SparkOptions
from pipelines.embedded import reconcile_embedded
from pipelines.errors import EngineUnfit
from pipelines.increments.increment import reconcile_new
from pipelines.increments.state import IncrementState
from pipelines.judging.cut_off import CutOff
from pipelines.reconciliation import Books, ReconciliationOutcome, reconcile
from pipelines.sources.databases.adbc import count_rows
from pipelines.sources.databases.tables import CREDITS, ORDER_ITEMS, ORDERS, check_tables
from pipelines.sources.reading import Reading
from pipelines.spark.progress import shown_step, shown_tasks
from pipelines.spark.session import spark_session

MAX_SMALL_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class TimedOutcome:
    """The outcome of a reconciliation, and the durations of its steps in seconds.

    `start_s` is the time that Spark took to start, or None without Spark. `compare_s` is the time that the comparison
    took.
    """

    outcome: ReconciliationOutcome
    start_s: float | None
    compare_s: float


Judge = Callable[[CutOff], TimedOutcome]
"""A function that compares the current rows of the sources as of a cut-off."""


def now_ms() -> int:
    """Returns the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@contextmanager
def spark_judge(
    books: Books, output: str, options: SparkOptions, progress: Console, increment: IncrementOptions = EVERYTHING
) -> Iterator[Judge]:
    """Starts Spark, and yields a function that compares all rows of the sources, or only new ones. It can be called repeatedly.

    Raises the errors of `reconcile`, and SparkUnavailable.
    """
    state = None if increment.state is None else IncrementState(increment.state)
    if state is not None:
        state.check()  # so that a second run fails before the slow start of Spark
    starting_s = time.monotonic()
    with opened_session(books, options, progress) as reading:
        start_s = time.monotonic() - starting_s

        def judge(cut_off: CutOff) -> TimedOutcome:
            begun_s = time.monotonic()
            with shown_tasks(progress, reading.spark, "Comparing orders and credits"):
                if state is None:
                    outcome = reconcile(reading, books, cut_off, output)
                else:
                    outcome = reconcile_new(reading, books, cut_off, output, state, full=increment.full)
            return TimedOutcome(outcome, start_s, time.monotonic() - begun_s)

        yield judge


def reconciled_embedded(books: Books, output: str, progress: Console, cut_off: CutOff) -> TimedOutcome:
    """Compares small sources with SQLite, without Spark. Raises the errors of `reconcile_embedded`."""
    begun_s = time.monotonic()
    _check(books)
    if not are_small(books):
        raise EngineUnfit(
            f"the databases have more than {MAX_SMALL_ROWS:,} rows, or the commit log is too long; use --engine spark"
        )
    with shown_step(progress, "Comparing orders and credits"):
        outcome = reconcile_embedded(books, cut_off, output)
    return TimedOutcome(outcome, None, time.monotonic() - begun_s)


def _check(books: Books) -> None:
    for log in books.logs:
        log.check()
    check_tables(books.order_database, books.credit_database)


@contextmanager
def opened_session(books: Books, options: SparkOptions, progress: Console) -> Iterator[Reading]:
    """Checks the sources and yields a Spark session. Raises UnreadableStore, UnreadableDatabase or SparkUnavailable."""
    _check(books)
    is_small = are_small(books)
    with ExitStack() as stack:
        with shown_step(progress, "Starting Spark"):
            spark = stack.enter_context(
                spark_session(options.master, options.spark_log, is_small=is_small, memory=options.memory)
            )
        yield Reading(spark, is_small)


def are_small(books: Books) -> bool:
    """Returns True if one process can read the sources in a few seconds. Raises UnreadableDatabase and UnreadableStore."""
    tables = ((books.order_database, ORDERS), (books.order_database, ORDER_ITEMS), (books.credit_database, CREDITS))
    rows = sum(count_rows(address, table.name, MAX_SMALL_ROWS + 1) for address, table in tables)
    return rows <= MAX_SMALL_ROWS and all(log.is_small() for log in books.logs)
