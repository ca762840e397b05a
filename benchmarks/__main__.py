"""python -m benchmarks: our broker side by side with Apache RocketMQ 4.9.7, driven by Apache's own Java client."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.brokers import Side
from benchmarks.measure import measure, measure_recovery
from benchmarks.plan import Plan, loads
from benchmarks.report import Results
from demo.processes import ProcessFailed

RESULTS = Path(__file__).resolve().parent.parent / "data" / "benchmarks"
CANNOT_MEASURE = 2
INTERRUPTED = 130
QUICK_THREADS = "1,32"
QUICK_SECONDS = 5
QUICK_MESSAGES = 100_000
WIDTH = 130


def main(
    threads: Annotated[str, typer.Option(help="How many threads send, one row of the table for each number.")] = "1,8,32,128",
    flush: Annotated[str, typer.Option(help="flushDiskType, one row for each.")] = "SYNC_FLUSH,ASYNC_FLUSH",
    headers: Annotated[str, typer.Option(help="The client's serializer, one row for each.")] = "JSON,ROCKETMQ",
    rounds: Annotated[int, typer.Option(min=1, help="How often each row is measured.")] = 3,
    seconds: Annotated[int, typer.Option(min=1, help="Seconds of each load, after 10 s of warm-up.")] = 10,
    size: Annotated[int, typer.Option(min=16, help="Bytes of a message's body.")] = 1024,
    consume: Annotated[int, typer.Option(min=0, help="Messages of the rows with a consumer; 0 for none.")] = 100_000,
    recover: Annotated[int, typer.Option(min=0, help="Messages in the store that is recovered; 0 for none.")] = 1_000_000,
    quick: Annotated[bool, typer.Option("--quick", help="A part of it: JSON, 1 and 32 threads, one round.")] = False,
) -> None:
    """Measures both brokers in turn, and prints one table."""
    console = _console()
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if missing:
        console.print(f"{' and '.join(missing)} not found: the benchmark needs Java 17 and Maven", highlight=False)
        sys.exit(CANNOT_MEASURE)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if quick:
        threads, headers, rounds, seconds, recover = QUICK_THREADS, "JSON", 1, QUICK_SECONDS, min(recover, QUICK_MESSAGES)
    rows = loads(flush.split(","), headers.split(","), [int(number) for number in threads.split(",")], with_consumer=consume > 0)
    plan = Plan(loads=rows, rounds=rounds, seconds=seconds, body_size=size, consumed=consume, recovered=recover)
    results = Results(_environment(), recovered=recover)
    code = 0
    try:
        _measure_all(plan, results, console)
    except ProcessFailed as error:
        console.print(f"[red]The benchmark could not go on:[/red] {error}", highlight=False)
        code = CANNOT_MEASURE
    except KeyboardInterrupt:
        console.print("\nInterrupted; all processes are stopped.")
        code = INTERRUPTED
    if results.samples:
        console.print(results.table())
        for line in results.footer():
            console.print(line, highlight=False)
        directory = RESULTS / time.strftime("%Y-%m-%d-%H%M%S")
        results.write(directory)
        console.print(f"Written to {directory}", highlight=False)
    sys.exit(code)


def _measure_all(plan: Plan, results: Results, console: Console) -> None:
    runs = plan.runs()
    console.print(
        f"{len(runs)} runs, {plan.rounds} of each row: about {plan.total_s() / 60:.0f} minutes. Ctrl-C ends it sooner.",
        highlight=False,
    )
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-") as folder,
        Progress(*_columns(), console=console, transient=True) as progress,
    ):
        task = progress.add_task("", total=plan.total_s())
        for number, run in enumerate(runs):
            what = f"{run.load.flush} {run.load.header} {run.load.name}, {run.side.value}"
            progress.update(task, description=what)
            sample = measure(plan, run, Path(folder) / str(number))
            results.add(run.load, run.side, sample)
            progress.console.print(
                f"{number + 1}/{len(runs)} {what}: {sample.committed_per_s:,.0f} committed/s, p99 {sample.p99_ms:.1f} ms",
                highlight=False,
            )
            progress.advance(task, plan.run_s(run))
        for side in Side if plan.recovered else ():
            progress.update(task, description=f"recovery of {plan.recovered:,} messages, {side.value}")
            results.recovery_s[side] = measure_recovery(plan, side, Path(folder) / f"recovery-{side.value}")
            progress.advance(task, plan.recovery_s(side))


def _columns() -> list[ProgressColumn]:
    percentage, what = TextColumn("{task.percentage:3.0f} %"), TextColumn("{task.description}")
    return [SpinnerColumn(), BarColumn(), percentage, TimeElapsedColumn(), what]


def _console() -> Console:
    """As wide as the table needs where nobody says how wide it is."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _environment() -> dict[str, str]:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "Python": f"{platform.python_version()} ({Path(sys.executable).resolve()}, {platform.python_compiler()})",
        "machine": f"{os.cpu_count()} processors, {platform.platform()}, load at the start {load}",
    }


if __name__ == "__main__":
    typer.run(main)
