"""python -m lab.benchmarks.reconciliation: measures the reconciliation on large databases with known faults.

Also compares the reconciliation with other tools.
"""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from demo.processes import Processes, ProcessFailed
from lab.benchmarks.reconciliation.books import write_books
from lab.benchmarks.reconciliation.report import faults_table, growth_table, times_table, two_tables_table
from lab.benchmarks.reconciliation.runs import Run, RunFailed, reconcile
from lab.benchmarks.reconciliation.spark_cluster import start_spark_cluster
from lab.benchmarks.reconciliation.two_tables.rounds import TwoTables, compared_in_turn
from lab.benchmarks.reconciliation.two_tables.tools import Tool, ToolRun, compare, how_to_get, tools_here
from rocketmq_broker.stop_signals import until_interrupted

BYTES_PER_ORDER = 1_400
CANNOT_MEASURE = 2


def main(
    orders: Annotated[list[int] | None, typer.Option(min=1_000, help="number of orders; may be repeated")] = None,
    rounds: Annotated[int, typer.Option(min=0, help="comparisons of the two tables by each tool, in turn; 0 omits them")] = 3,
    workers: Annotated[
        list[int] | None,
        typer.Option(min=1, help="reconcile on a Spark cluster with this number of workers on this machine; may be repeated"),
    ] = None,
    memory: Annotated[str, typer.Option(help="heap of Spark's JVM and of each worker's; memory of DuckDB")] = "4g",
    folder: Annotated[Path, typer.Option(help="folder for the books during the run")] = Path("data/bench-pipelines"),
    packages: Annotated[Path, typer.Option(help="folder in which datacompy and DuckDB are installed")] = Path("data/comparison"),
) -> None:
    """Write databases with faults, reconcile them, and check the findings. Then compare two tables with each tool."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    screen = Console()
    tools = tools_here(packages) if rounds else []
    if rounds and (missing := [tool for tool in Tool if tool not in tools]):
        screen.print(how_to_get(missing, packages), style="yellow", markup=False, emoji=False, highlight=False)
    runs: list[Run] = []
    compared: list[TwoTables] = []
    for count in orders or [1_000_000, 5_000_000, 10_000_000]:
        try:
            with _books(count, folder, screen) as books:
                for number in workers or (None,):
                    runs.append(_reconciled(books, count, memory, number, screen))
                    screen.print(faults_table(runs[-1]))
                if tools:
                    compared.append(_compared(books, count, memory, tools, rounds, packages.absolute(), screen))
                    _print_two_tables(compared[-1], screen)
        except (RunFailed, ProcessFailed) as error:
            screen.print(f"{count:,} orders: {error}", style="bold red", markup=False, emoji=False)
            sys.exit(CANNOT_MEASURE)
    screen.print(times_table(runs))
    if (growth := growth_table(runs, compared)) is not None:
        screen.print(growth)
    sys.exit(not all(run.is_right for run in runs) or not all(two_tables.is_right for two_tables in compared))


@contextmanager
def _books(count: int, folder: Path, screen: Console) -> Iterator[Path]:
    """Writes databases and a commit log with `count` orders, and removes them at the end of the block. Raises RunFailed."""
    books = folder.absolute() / str(count)
    shutil.rmtree(books, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    needed = count * BYTES_PER_ORDER
    if shutil.disk_usage(folder).free < 2 * needed:
        raise RunFailed(f"not enough disk space in {folder}: {needed / 1e9:.1f} GB for the data, and as much again for Spark")
    try:
        with screen.status(f"Writing books of {count:,} orders"):
            write_books(books, count, time.time_ns() // 1_000_000)
        yield books
    finally:
        shutil.rmtree(books, ignore_errors=True)


def _reconciled(books: Path, count: int, memory: str, workers: int | None, screen: Console) -> Run:
    """Reconciles in one process, or on a cluster of its own. Raises RunFailed or ProcessFailed."""
    if workers is None:
        with screen.status(f"Reconciling {count:,} orders"):
            return reconcile(books, count, memory)
    with screen.status(f"Reconciling {count:,} orders with {workers} Spark workers"), Processes(books / "logs") as processes:
        cluster = start_spark_cluster(processes, books / "executors", workers=workers, memory=memory)
        return reconcile(books, count, memory, cluster)


def _compared(books: Path, count: int, memory: str, tools: list[Tool], rounds: int, packages: Path, screen: Console) -> TwoTables:
    with screen.status("") as status:

        def run(tool: Tool) -> ToolRun:
            status.update(f"Comparing {count:,} orders with their credits: {tool.value}")
            return compare(tool, books, memory, packages)

        return compared_in_turn(count, tools, rounds, run)


def _print_two_tables(two_tables: TwoTables, screen: Console) -> None:
    if two_tables.results:
        screen.print(two_tables_table(two_tables))
    for failure in two_tables.failed:
        screen.print(failure, style="bold red", markup=False, emoji=False)


if __name__ == "__main__":
    with until_interrupted("Stopped: the books of the run are removed."):
        typer.run(main)
