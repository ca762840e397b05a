"""python -m lab.benchmarks.orders: measures orders from POST to credit, with transactional messages and with an outbox."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

import itertools
import signal
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress

from demo.processes import ProcessFailed
from lab.benchmarks.orders.measure import Plan, measure
from lab.benchmarks.orders.placing import build_generator
from lab.benchmarks.orders.report import tables, write
from lab.benchmarks.orders.sample import Case, Delivery, Sample
from lab.benchmarks.orders.system import NoPostgresql
from lab.benchmarks.side_by_side.environment import environment
from lab.benchmarks.side_by_side.generator import CannotBuild
from rocketmq_broker.stop_signals import INTERRUPTED, until_interrupted

PROJECT_ROOT = Path(__file__).resolve().parents[3]
RESULTS = PROJECT_ROOT / "data" / "benchmarks"
WAYS = {
    "transactional": Delivery.TRANSACTIONAL,
    "outbox-polled": Delivery.OUTBOX_POLLED,
    "outbox-notified": Delivery.OUTBOX_NOTIFIED,
}
BROKERS = {"ours": "ours", "apache": "Apache"}
DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
CANNOT_MEASURE = 2
T = TypeVar("T")


def main(
    ways: Annotated[str, typer.Option(help="How the credit service learns of orders.")] = ",".join(WAYS),
    brokers: Annotated[str, typer.Option(help="Whose broker.")] = ",".join(BROKERS),
    databases: Annotated[str, typer.Option(help="Databases of both services.")] = ",".join(DATABASES),
    rate: Annotated[float, typer.Option(min=1, help="Orders per second while times are measured.")] = 50,
    in_flight: Annotated[int, typer.Option(min=1, help="Unanswered requests while throughput is measured.")] = 16,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds of each of the two measurements.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each case, in turn.")] = 3,
) -> None:
    """Measures orders per second and the time from POST to credit, and prints the results."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console()
    cases = [
        Case(delivery, broker, database)
        for database, broker, delivery in itertools.product(
            _chosen(databases, DATABASES), _chosen(brokers, BROKERS), _chosen(ways, WAYS)
        )
    ]
    samples: dict[Case, list[Sample]] = {}
    try:
        build_generator()
    except CannotBuild as error:
        console.print(str(error), style="red", soft_wrap=True)
        raise typer.Exit(CANNOT_MEASURE) from None
    try:
        _measure_all(cases * rounds, Plan(rate, in_flight, seconds), samples, console)
    except KeyboardInterrupt:
        console.print("Interrupted; results so far:")
        console.print(*tables(samples, console.width))
        raise typer.Exit(INTERRUPTED) from None
    console.print(*tables(samples, console.width))
    if not samples:
        raise typer.Exit(CANNOT_MEASURE)
    directory = RESULTS / f"orders-{time.strftime('%Y-%m-%d-%H%M%S')}"
    write(samples, environment(), directory)
    console.print(f"Written to {directory}", soft_wrap=True)


def _measure_all(cases: list[Case], plan: Plan, samples: dict[Case, list[Sample]], console: Console) -> None:
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=len(cases))
        for case in cases:
            progress.update(task, description=case.name)
            try:
                with tempfile.TemporaryDirectory(prefix="bench-orders-") as home:
                    sample = measure(case, plan, Path(home))
            except (ProcessFailed, NoPostgresql) as error:
                console.print(f"{case.name}: could not be measured: {error}", style="red")
            else:
                samples.setdefault(case, []).append(sample)
            progress.advance(task)


def _chosen(text: str, known: Mapping[str, T]) -> Iterable[T]:
    for word in filter(None, map(str.strip, text.split(","))):
        if word not in known:
            raise typer.BadParameter(f"unknown value {word!r}; choose from {', '.join(known)}")
        yield known[word]


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    app.command()(main)
    with until_interrupted():
        app()
