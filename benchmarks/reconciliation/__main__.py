"""python -m benchmarks.reconciliation: large books with known faults, and how the time grows with them."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.reconciliation.books import write_books
from benchmarks.reconciliation.runs import Run, RunFailed, reconcile

BYTES_PER_ORDER = 1_400
CANNOT_MEASURE = 2


def main(
    orders: Annotated[list[int] | None, typer.Option(min=1_000, help="how many orders; may be repeated")] = None,
    memory: Annotated[str, typer.Option(help="heap of Spark's JVM")] = "4g",
    folder: Annotated[Path, typer.Option(help="where the books go for the time of the run")] = Path("data/bench-pipelines"),
) -> None:
    """Write books, reconcile them, and compare what was found with what was injected."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    screen = Console()
    runs = []
    for count in orders or [1_000_000, 5_000_000, 10_000_000]:
        try:
            runs.append(_run(count, memory, folder, screen))
        except RunFailed as error:
            screen.print(f"{count:,} orders: {error}", style="bold red", markup=False)
            sys.exit(CANNOT_MEASURE)
        screen.print(faults_table(runs[-1]))
    screen.print(times_table(runs))
    sys.exit(any(run.invented or any(fault.found != fault.injected for fault in run.faults) for run in runs))


def _run(count: int, memory: str, folder: Path, screen: Console) -> Run:
    books = folder / str(count)
    shutil.rmtree(books, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    needed = count * BYTES_PER_ORDER
    if shutil.disk_usage(folder).free < 2 * needed:
        raise RunFailed(f"the books need {needed / 1e9:.1f} GB in {folder}, and Spark as much again")
    try:
        with screen.status(f"Writing books of {count:,} orders"):
            write_books(books, count, time.time_ns() // 1_000_000)
        with screen.status(f"Reconciling {count:,} orders"):
            return reconcile(books.absolute(), count, memory)
    finally:
        shutil.rmtree(books, ignore_errors=True)


def faults_table(run: Run) -> Table:
    """Each fault: how often it was injected, and found."""
    table = Table(title=f"{run.orders:,} orders: {run.invented} findings invented")
    table.add_column("fault")
    for name in ("injected", "found, class and cause right"):
        table.add_column(name, justify="right")
    for fault in run.faults:
        style = "" if fault.found == fault.injected else "bold red"
        table.add_row(fault.fault.value, f"{fault.injected:,}", f"{fault.found:,}", style=style)
    return table


def times_table(runs: list[Run]) -> Table:
    """Each size: time, orders a second, processor time an order, memory."""
    table = Table(title="python -m pipelines reconcile, with its commit log")
    for name in ("orders", "wall s", "orders/s", "CPU s", "CPU µs an order", "peak GB"):
        table.add_column(name, justify="right")
    for run in runs:
        usage = run.usage
        table.add_row(
            f"{run.orders:,}",
            f"{usage.wall_s:.0f}",
            f"{run.orders / usage.wall_s:,.0f}",
            f"{usage.cpu_s:.0f}",
            f"{usage.cpu_s / run.orders * 1e6:.0f}",
            f"{usage.peak_bytes / 1e9:.1f}",
        )
    return table


if __name__ == "__main__":
    typer.run(main)
