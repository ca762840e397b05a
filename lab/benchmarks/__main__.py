"""python -m lab.benchmarks: measures our broker and Apache RocketMQ under the same load."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

import compileall
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

import rocketmq_broker
from demo.processes import ProcessFailed
from lab.benchmarks.side_by_side.brokers import ASYNC, SYNC, Side
from lab.benchmarks.side_by_side.environment import environment
from lab.benchmarks.side_by_side.generator import CannotBuild, build
from lab.benchmarks.side_by_side.measure import measure
from lab.benchmarks.side_by_side.page import with_results
from lab.benchmarks.side_by_side.plan import (
    BINARY_HEADERS,
    BY_GRPC,
    GENERATED,
    Kind,
    Load,
    Plan,
    State,
    generated_loads,
    java_loads,
)
from lab.benchmarks.side_by_side.report import Results
from lab.benchmarks.side_by_side.sample import Sample
from rocketmq_broker.stop_signals import INTERRUPTED, until_interrupted

PROJECT_ROOT = Path(__file__).resolve().parents[2]
BROKER = Path(rocketmq_broker.__file__).parent
"""The folder of the installed package, which is Python source or compiled by `make compile`."""
RESULTS = PROJECT_ROOT / "data" / "benchmarks"
PAGE = PROJECT_ROOT / "docs" / "benchmarks.md"
CANNOT_MEASURE = 2
SIDES = {
    "ours": Side.OURS,
    "interpreted": Side.INTERPRETED,
    "apache": Side.APACHE,
    "apache-5": Side.APACHE_5,
    "floor": Side.FLOOR,
}
QUICK_SECONDS = 3
QUICK_STEADY_WITHIN_S = 30


def main(
    rows: Annotated[str, typer.Option(help=f"Kinds of load; also {', '.join(BY_GRPC)}.")] = ",".join(GENERATED),
    in_flight: Annotated[str, typer.Option(help="Unanswered requests, one row for each number.")] = "1,32,128",
    flush: Annotated[str, typer.Option(help="flushDiskType, one row for each.")] = f"{SYNC},{ASYNC}",
    brokers: Annotated[str, typer.Option(help=f"Brokers to measure in turn: {', '.join(SIDES)}.")] = "ours,apache,floor",
    states: Annotated[str, typer.Option(help="States of the brokers, a set of rows for each.")] = f"{State.COLD},{State.WARM}",
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each row.")] = 3,
    warm_up: Annotated[int, typer.Option(min=1, help="Seconds of load before each measurement.")] = 2,
    steady_within: Annotated[int, typer.Option(min=1, help="Maximum seconds of load before the warm rows.")] = 40,
    seconds: Annotated[int, typer.Option(min=1, help="Seconds of each measurement.")] = 10,
    size: Annotated[int, typer.Option(min=16, help="Size of a message's body in bytes.")] = 1024,
    rate: Annotated[int, typer.Option(min=1, help="Transactions per second of the row `listener`.")] = 1000,
    backlog: Annotated[int, typer.Option(min=1, help="Messages in the store for the rows `pulls` and `restart`.")] = 1_000_000,
    pending: Annotated[int, typer.Option(min=1, help="Pending transactions for the rows `checks` and `restart`.")] = 100_000,
    quick: Annotated[bool, typer.Option("--quick", help="Measure transactions once, 3 s a row: some eleven minutes.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Put the results into docs/benchmarks.md as well.")] = False,
    java: Annotated[bool, typer.Option("--java", help="Generate the load with Apache's Java client.")] = False,
    threads: Annotated[str, typer.Option(help="With --java: sending threads, one row for each number.")] = "1,8,32,128",
    headers: Annotated[str, typer.Option(help="With --java: the client's serializer, one row for each.")] = "JSON,ROCKETMQ",
    consume: Annotated[int, typer.Option(min=0, help="With --java: messages of rows with a consumer; 0: none.")] = 100_000,
) -> None:
    """Measures the brokers in turn and prints the results."""
    console = Console()
    flushes = _chosen(flush, [SYNC, ASYNC])
    if java:
        loads = java_loads(flushes, _chosen(headers, ["JSON", BINARY_HEADERS]), _numbers(threads), with_consumer=consume > 0)
    else:
        kinds = [Kind.TRANSACTIONS] if quick else [Kind(row) for row in _chosen(rows, [*GENERATED, *BY_GRPC])]
        in_states = [State(state) for state in _chosen(states, list(State))]
        loads = generated_loads(kinds, flushes, _numbers(in_flight), in_states)
    if quick:
        rounds, seconds, steady_within = 1, QUICK_SECONDS, QUICK_STEADY_WITHIN_S
    plan = Plan(
        sides=[SIDES[name] for name in _chosen(brokers, list(SIDES))],
        loads=loads,
        rounds=rounds,
        warm_up_s=warm_up,
        steady_within_s=steady_within,
        seconds=seconds,
        body_size=size,
        rate=rate,
        backlog=backlog,
        pending=pending,
        consumed=consume,
    )
    _check_tools(console, needs_generator=not java)
    _compile_modules()
    results = Results(environment())
    code = _run(plan, results, console)
    if page and code == 0:
        PAGE.write_text(with_results(PAGE.read_text(), results.rows(), time.strftime("%Y-%m-%d")))
    sys.exit(code)


def _compile_modules() -> None:
    """Writes the broker's bytecode, so that no measured start compiles modules."""
    compileall.compile_dir(BROKER, quiet=2)


def _run(plan: Plan, results: Results, console: Console) -> int:
    """Measures, prints the results and returns the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = 0
    try:
        _measure_all(plan, results, console)
        code = CANNOT_MEASURE if results.failed else 0
    except ProcessFailed as error:
        console.print(f"[red]The benchmark failed:[/red] {error}", highlight=False)
        code = CANNOT_MEASURE
    except KeyboardInterrupt:
        console.print("\nInterrupted; all processes are stopped.")
        code = INTERRUPTED
    if results.samples:
        for table in results.tables(console.width):
            console.print(table, "")
        for line in results.footer():
            console.print(line, highlight=False, markup=False, emoji=False)
        directory = RESULTS / time.strftime("%Y-%m-%d-%H%M%S")
        results.write(directory)
        console.print(f"Written to {directory}", highlight=False, soft_wrap=True)
    return code


def _measure_all(plan: Plan, results: Results, console: Console) -> None:
    runs = plan.runs()
    console.print(
        f"{len(runs)} runs, {plan.rounds} of each row: about {plan.total_s() / 60:.0f} minutes. Press Ctrl-C to stop.",
        highlight=False,
    )
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-") as folder,
        Progress(*_columns(), console=console, transient=True) as progress,
    ):
        task = progress.add_task("", total=plan.total_s())
        for number, run in enumerate(runs):
            progress.update(task, description=run.name)
            try:
                samples = measure(plan, run, Path(folder) / str(number))
            except ProcessFailed as error:
                if not results.samples:
                    raise
                results.failed.append(f"{run.name}: {error}")
                said = f"could not be measured: {error}"
            else:
                for load, sample in zip(run.loads, samples, strict=True):
                    results.add(load, run.side, sample)
                said = ", ".join(_in_short(load, sample) for load, sample in zip(run.loads, samples, strict=True))
            progress.console.print(f"{number + 1}/{len(runs)} {run.name}: {said}", highlight=False, markup=False, emoji=False)
            progress.advance(task, plan.run_s(run))


def _in_short(load: Load, sample: Sample) -> str:
    busy = f", beside other programs that used {sample.others.processors:.1f} processors" if sample.others.is_busy else ""
    return f"{sample.result:,.2f} {load.unit}{busy}"


def _check_tools(console: Console, *, needs_generator: bool) -> None:
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if missing:
        console.print(
            f"{' and '.join(missing)} not found: the benchmark needs Java 17 and Maven for Apache's broker", highlight=False
        )
        sys.exit(CANNOT_MEASURE)
    if needs_generator:
        try:
            build()
        except CannotBuild as error:
            console.print(str(error), highlight=False, markup=False, emoji=False)
            sys.exit(CANNOT_MEASURE)


def _numbers(text: str) -> Sequence[int]:
    numbers = [int(number) for number in text.split(",") if number.isdecimal()]
    if len(numbers) != text.count(",") + 1 or 0 in numbers:
        raise typer.BadParameter(f"invalid list {text!r}: expected numbers of at least 1, such as 1,32")
    return numbers


def _chosen(text: str, known: Sequence[str]) -> Sequence[str]:
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            raise typer.BadParameter(f"unknown value {name!r}; choose from {', '.join(known)}")
    return chosen


def _columns() -> list[ProgressColumn]:
    percentage, what = TextColumn("{task.percentage:3.0f} %"), TextColumn("{task.description}")
    return [SpinnerColumn(), BarColumn(), percentage, TimeElapsedColumn(), what]


if __name__ == "__main__":
    with until_interrupted():
        typer.run(main)
