"""Was every order placed once and credited once? What customers were told is compared here; the rest is Spark's."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from demo.books import Books
from demo.orders import OrderAnswer, Outcome
from demo.processes import Processes

RECONCILE_SECONDS = 300


def answers_hold(answers: Sequence[OrderAnswer], books: Books, console: Console) -> bool:
    """Whether every order that a customer was told is placed is in the database."""
    told = {answer.order_id for answer in answers if answer.outcome is Outcome.PLACED}
    missing = told - books.orders().keys()
    if missing:
        console.print(f"[red]{len(missing)} orders were answered as placed and are not in the database.[/red]")
    return not missing


def reconcile(environment: Mapping[str, str], store: Path | None, output: Path, processes: Processes, console: Console) -> int:
    """Run the Spark job, show what it prints, and answer its exit code; `store` is the broker's, where it can be read."""
    arguments = [sys.executable, "-m", "pipelines", "reconcile", "--grace-seconds", "0", "--output", str(output)]
    if store is not None:
        arguments += ["--store", str(store)]
    job = processes.add("reconciliation", arguments, environment={**environment, "COLUMNS": str(console.width)})
    with console.status("Spark compares both databases"):
        job.spawn()
        exit_code = job.wait(RECONCILE_SECONDS)
    console.print(job.output(), highlight=False, markup=False)
    return exit_code
