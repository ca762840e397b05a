"""The command `watch`, which opens and closes breaks while the system runs."""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer
from rich.console import Console

from pipelines.breaks.break_table import BreakTable
from pipelines.commands.arguments import Audits, BooksOptions, Output, PatienceOptions, SparkOptions
from pipelines.commands.option_groups import with_groups
from pipelines.commands.running import now_ms, opened_session
from pipelines.commands.verdict import exit_with
from pipelines.errors import COULD_NOT_TELL
from pipelines.increments.increment import reconcile_new
from pipelines.increments.state import IncrementState
from pipelines.judging.totals import Tolerance
from pipelines.reconciliation import Books
from pipelines.reporting.report import say, unchecked_repairs, verdict_text
from pipelines.sources.reading import Reading

MIN_EVERY_S: Final = 1.0


@with_groups(without=frozenset({"broker"}), behind={"spark_log": "output"})
def watch_command(
    books: BooksOptions,
    spark: SparkOptions,
    patience: PatienceOptions,
    every: Annotated[float, typer.Option(min=1, help="seconds between two rounds")] = 20.0,
    state: Annotated[Path, typer.Option(help="folder for the state")] = Path("data/reconciliation-state"),
    breaks: Annotated[Path, typer.Option(help="track breaks in this file")] = Path("data/breaks.db"),
    output: Output = "data/reconciliation",
    audit: Audits = None,
) -> None:
    """Compare new rows every few seconds, and open and close breaks, until SIGTERM or Ctrl-C. The exit code is then 0."""
    progress = Console(stderr=True)

    def work() -> bool:
        compared = books.books(audit)
        with ExitStack() as stack:
            begun_s = time.monotonic()
            reading = stack.enter_context(opened_session(compared, spark, progress))
            say(f"Spark started in {time.monotonic() - begun_s:.1f} s.")
            turn = turn_of(reading, compared, patience, output, IncrementState(state), BreakTable(breaks))
            watch(turn, say, _stopped_by_signals(), every)
        return True

    exit_with(work, progress)


def watch(turn: Callable[[], str], say: Callable[[str], None], stopping: threading.Event, every_s: float) -> int:
    """Runs rounds until `stopping` is set, with a pause of `every_s` seconds between them. Returns the number of failed rounds.

    If a database or a disk is unavailable, the round fails, and the next one continues from the last successful one.
    """
    failed = 0
    while not stopping.is_set():
        try:
            say(turn())
        except COULD_NOT_TELL as error:
            failed += 1
            say(f"could not tell: {error}")
        stopping.wait(max(every_s, MIN_EVERY_S))
    return failed


def turn_of(
    reading: Reading,
    books: Books,
    patience: PatienceOptions,
    output: str,
    state: IncrementState,
    breaks: BreakTable,
    now_ms: Callable[[], int] = now_ms,
) -> Callable[[], str]:
    """Returns a function that runs one round and returns a line for the screen.

    A round judges new and open orders at the time that `now_ms` returns. A break is opened in the first round after the
    grace period of its order.
    """

    def turn() -> str:
        begun_s = time.monotonic()
        cut_off = patience.cut_off(now_ms())
        outcome = reconcile_new(reading, books, cut_off, output, state)
        changes = breaks.update(outcome.rows, cut_off.as_of_ms)
        at = datetime.fromtimestamp(cut_off.as_of_ms / 1000, UTC).strftime("%H:%M:%S")
        verdict = verdict_text(outcome.totals, Tolerance())
        counts = f"breaks: {changes.opened} opened, {changes.closed} closed, {changes.still_open} open"
        if believed := unchecked_repairs(outcome.totals, is_audited=books.read_repairs is not None):
            counts += f"; {believed}"
        return f"{at}  {verdict}; {counts}; compared in {time.monotonic() - begun_s:.1f} s"

    return turn


def _stopped_by_signals() -> threading.Event:
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return stopping
