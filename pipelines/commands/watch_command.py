"""The command `watch`: breaks are opened and closed while the system runs."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from pipelines.breaks.break_table import BreakTable
from pipelines.commands.arguments import (
    ConsumerGroup,
    CreditDatabase,
    CreditPasswordFile,
    Grace,
    Master,
    Memory,
    OrderDatabase,
    OrderPasswordFile,
    Output,
    Overdue,
    SparkLog,
    Stores,
    Topic,
)
from pipelines.commands.running import SparkSettings, books_of, opened_session
from pipelines.commands.verdict import exit_with
from pipelines.commands.watching import watch
from pipelines.increments.increment import reconcile_new
from pipelines.increments.state import State
from pipelines.judging.cut_off import GRACE_SECONDS, OVERDUE_SECONDS, CutOff
from pipelines.judging.log_events import Route
from pipelines.reconciliation import Books
from pipelines.sources.reading import Reading
from pipelines.telling.report import verdict_told
from pipelines.telling.screen import say
from pipelines.tolerance import Tolerance

StateFolder = Annotated[Path, typer.Option("--state", help="what is kept from turn to turn")]
BreakFile = Annotated[Path, typer.Option("--breaks", help="keep account of breaks in this file")]
Every = Annotated[float, typer.Option(min=1, help="seconds between two turns")]


def watch_command(
    order_database_url: OrderDatabase = "sqlite:///data/orders.db",
    credit_database_url: CreditDatabase = "sqlite:///data/credits.db",
    order_database_password_file: OrderPasswordFile = "",
    credit_database_password_file: CreditPasswordFile = "",
    store: Stores = None,
    topic: Topic = "orders",
    consumer_group: ConsumerGroup = "credit_service",
    master: Master = None,
    memory: Memory = None,
    grace_seconds: Grace = GRACE_SECONDS,
    overdue_seconds: Overdue = OVERDUE_SECONDS,
    every: Every = 20.0,
    state: StateFolder = Path("data/reconciliation-state"),
    breaks: BreakFile = Path("data/breaks.db"),
    output: Output = "data/reconciliation",
    spark_log: SparkLog = None,
) -> None:
    """Compare what is new every few seconds, and open and close breaks, until SIGTERM or Ctrl-C. Exit code 0 then."""
    progress = Console(stderr=True)

    def work() -> bool:
        books = books_of(
            (order_database_url, order_database_password_file),
            (credit_database_url, credit_database_password_file),
            Route(topic, consumer_group),
            store,
        )
        with ExitStack() as stack:
            begun_s = time.monotonic()
            reading = stack.enter_context(opened_session(books, SparkSettings(master, memory, spark_log), progress))
            say(f"Spark started in {time.monotonic() - begun_s:.1f} s.")
            turn = turn_of(reading, books, (grace_seconds, overdue_seconds), output, State(state), BreakTable(breaks))
            watch(turn, say, _stopped_by_signals(), every)
        return True

    exit_with(work, progress)


def turn_of(
    reading: Reading,
    books: Books,
    patience: tuple[int, int],
    output: str,
    state: State,
    breaks: BreakTable,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> Callable[[], str]:
    """A turn of the watch: judges what is new, and what was open, as of `now_ms`; answers its line.

    `patience` is grace period and overdue time, in seconds. The first turn that begins after an order's grace period opens its
    break.
    """

    def turn() -> str:
        begun_s = time.monotonic()
        cut_off = CutOff(now_ms(), *patience)
        try:
            outcome = reconcile_new(reading, books, cut_off, output, state)
        finally:
            reading.spark.catalog.clearCache()
        changes = breaks.update(outcome.rows, cut_off.as_of_ms)
        at = datetime.fromtimestamp(cut_off.as_of_ms / 1000, UTC).strftime("%H:%M:%S")
        told = verdict_told(outcome.totals, Tolerance())
        counts = f"breaks: {changes.opened} opened, {changes.closed} closed, {changes.still_open} open"
        return f"{at}  {told}; {counts}; compared in {time.monotonic() - begun_s:.1f} s"

    return turn


def _stopped_by_signals() -> threading.Event:
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return stopping
