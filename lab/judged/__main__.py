"""python -m lab.judged: runs the shop with faults, and prints what Porcupine says about its history."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.benchmarks.side_by_side.generator import CannotBuild
from lab.benchmarks.tables import tables_within
from lab.judged.brokers import JudgedBroker
from lab.judged.run import JudgedRun, run
from lab.judged.verdict import ModelVerdict, judge
from rocketmq_broker.stop_signals import until_interrupted


def main(
    minutes: Annotated[float, typer.Option(help="How long customers place orders while processes are killed.")] = 5,
    broker: Annotated[
        JudgedBroker, typer.Option(help="apache is Apache RocketMQ 4.9.7 (needs Java and Maven).")
    ] = JudgedBroker.OURS,
    seed: Annotated[int, typer.Option(help="Chooses faults and orders. Their times still differ from run to run.")] = 1,
    into: Annotated[
        Path | None, typer.Option(help="An empty folder for history, logs and databases; a temporary one otherwise.")
    ] = None,
) -> None:
    """Runs broker and services with faults, and has Porcupine judge the history. The exit status is 1 if it is refused."""
    home = (into or Path(tempfile.mkdtemp(prefix="judged-"))).resolve()
    console = Console()
    home.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)  # that the broker is away, which this program sees to
    played = run(home, broker, minutes * 60, seed, Console(stderr=True).print)
    try:
        verdicts = judge(played.history, home)
    except CannotBuild as error:
        raise SystemExit(str(error)) from None
    _print(console, broker, played, verdicts)
    console.print(f"history, logs and databases: {home}", soft_wrap=True)
    if not all(verdict.is_accepted for verdict in verdicts.values()):
        raise SystemExit(1)


def _print(console: Console, broker: JudgedBroker, played: JudgedRun, verdicts: dict[str, ModelVerdict]) -> None:
    console.print(f"{broker}: {_counts(played.faults)}", soft_wrap=True)
    console.print(f"requests by response: {_counts(played.responses)}", soft_wrap=True)
    headings = ("model", "objects", "operations", "never complete", "refused", "undecided")
    rows = [
        (name, f"{one.objects:,}", f"{one.operations:,}", f"{one.unknown:,}", f"{len(one.refused)}", f"{len(one.undecided)}")
        for name, one in sorted(verdicts.items())
    ]
    for table in tables_within(console.width, headings, rows):
        console.print(table)
    for name, one in sorted(verdicts.items()):
        for of in (*one.refused, *one.undecided)[:10]:
            console.print(f"not linearizable, or undecided: {name} {of}", soft_wrap=True)


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in sorted(numbers.items()))


if __name__ == "__main__":
    with until_interrupted():
        typer.run(main)
