"""Checks that each order was placed and credited exactly once.

Uses the responses of the order service to the customers, and the Spark job.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from demo.books import ShopBooks
from demo.main_job.running_services import RunningServices
from demo.orders import OrderAnswer, PlacingOutcome
from demo.processes import Processes

RECONCILE_SECONDS = 1800
"""The time-out of the Spark job in seconds. Spark needs about a minute, but much longer on a busy machine."""


def answers_hold(answers: Sequence[OrderAnswer], books: ShopBooks, console: Console) -> bool:
    """Returns True if the database contains each order reported as placed. Otherwise prints the number of missing orders."""
    placed = {answer.order_id for answer in answers if answer.outcome is PlacingOutcome.PLACED}
    missing = placed - books.orders().keys()
    if missing:
        console.print(f"[red]{len(missing)} orders that the service reported as placed are not in the database.[/red]")
    return not missing


def command_for_kept(home: Path, services: RunningServices) -> str:
    """Returns the shell command that repeats the reconciliation of a run whose data is kept."""
    stores = " ".join(f"--store {shlex.quote(str(store))}" for store in services.broker_stores)
    orders, credits = shlex.quote(services.order_database_url), shlex.quote(services.credit_database_url)
    urls = f"ORDER_DATABASE_URL={orders} CREDIT_DATABASE_URL={credits}"
    output = shlex.quote(str(home / "reconciliation"))
    return f"{urls} \\\n  .venv/bin/python -m pipelines reconcile --grace-seconds 0 {stores} --output {output}"


def reconcile(
    environment: Mapping[str, str],
    stores: Sequence[Path],
    output: Path,
    processes: Processes,
    console: Console,
    *,
    show_output: bool,
) -> int:
    """Runs the Spark job, which prints to the screen. Returns its exit code. Raises DemoError if the job does not end.

    `stores` are the brokers' stores, if they are readable. With `show_output` the job prints the folder of its Parquet output.
    """
    arguments = [sys.executable, "-m", "pipelines", "reconcile", "--grace-seconds", "0", "--overdue-seconds", "0"]
    arguments += ["--output", str(output)]
    arguments.append("--show-output" if show_output else "--hide-output")
    for store in stores:
        arguments += ["--store", str(store)]
    job_environment = {**environment, "COLUMNS": str(console.width)}
    job = processes.add("reconciliation", arguments, environment=job_environment, has_log=False)
    job.spawn()
    return job.wait(RECONCILE_SECONDS)
