"""A reconciliation as commands run it: Spark is started, the books are compared, and the time is taken."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rich.console import Console

from pipelines.book_size import are_small
from pipelines.commands.arguments import EVERYTHING, IncrementOptions, SparkOptions
from pipelines.increments.increment import reconcile_new
from pipelines.increments.state import State
from pipelines.judging.cut_off import CutOff
from pipelines.reconciliation import Books, Outcome, reconcile
from pipelines.sources.databases.tables import check_tables
from pipelines.sources.reading import Reading
from pipelines.spark.progress import shown_step, shown_tasks
from pipelines.spark.session import spark_session


@dataclass(frozen=True, slots=True)
class TimedOutcome:
    """What a reconciliation found, and how long Spark took to start and to compare."""

    outcome: Outcome
    start_s: float
    compare_s: float


def reconciled(
    books: Books,
    cut_off: CutOff,
    output: str,
    options: SparkOptions,
    progress: Console,
    increment: IncrementOptions = EVERYTHING,
) -> TimedOutcome:
    """Starts Spark and compares: all, or what is new. Raises what `reconcile` raises, and SparkUnavailable."""
    state = None if increment.state is None else State(increment.state)
    if state is not None:
        state.check()  # nobody waits for Spark to be told that another run is at work
    begun_s = time.monotonic()
    with opened_session(books, options, progress) as reading:
        started_s = time.monotonic()
        with shown_tasks(progress, reading.spark, "Comparing orders and credits"):
            if state is None:
                outcome = reconcile(reading, books, cut_off, output)
            else:
                outcome = reconcile_new(reading, books, cut_off, output, state, full=increment.full)
        return TimedOutcome(outcome, started_s - begun_s, time.monotonic() - started_s)


@contextmanager
def opened_session(books: Books, options: SparkOptions, progress: Console) -> Iterator[Reading]:
    """Spark for these books, which can be read. Raises UnreadableStore, UnreadableDatabase, SparkUnavailable."""
    for log in books.logs:
        log.check()
    check_tables(books.order_database, books.credit_database)
    is_small = are_small(books.order_database, books.credit_database, books.logs)
    with ExitStack() as stack:
        with shown_step(progress, "Starting Spark"):
            spark = stack.enter_context(
                spark_session(options.master, options.spark_log, is_small=is_small, memory=options.memory)
            )
        yield Reading(spark, is_small)
