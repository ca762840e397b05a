"""python -m demo: places orders while processes are killed. Exits with 0 only if every order is credited exactly once."""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

import logging
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import stamina
import typer
from rich.console import Console
from rich.text import Text

from demo.errors import DemoError
from demo.main_job.scenario import DemoPlan, run_here, run_on_compose
from rocketmq_broker.logs import log_to_stderr
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.stop_signals import INTERRUPTED, until_interrupted

CONSISTENT, INCONSISTENT, COULD_NOT_TELL = 0, 1, 2
"""The exit codes, besides INTERRUPTED."""


def main(
    orders: Annotated[int, typer.Option(min=10, help="Number of orders to place.")] = 400,
    concurrency: Annotated[int, typer.Option(min=1, help="Number of customers that order at the same time.")] = 16,
    lost_commit_every: Annotated[
        int, typer.Option(min=1, help="The order service dies between local commit and COMMIT at every Nth order.")
    ] = 60,
    brokers: Annotated[int, typer.Option(min=1, max=26, help="Number of brokers; more than one run as a cluster.")] = 1,
    keep: Annotated[Path | None, typer.Option(help="Keep data and logs in this folder. It must not exist.")] = None,
    compose: Annotated[
        bool, typer.Option("--compose", help="Use running services, configured by environment variables; kill nothing.")
    ] = False,
) -> None:
    """Place orders, kill processes, wait for the credits, and compare both databases with Spark."""
    log_to_stderr(logging.WARNING)
    stamina.instrumentation.set_on_retry_hooks([])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.umask(0o077)  # databases, logs and findings are for this user only
    console = Console()
    plan = DemoPlan(orders=orders, concurrency=concurrency, lost_commit_every=lost_commit_every, brokers=brokers)
    home: Path | None = None
    try:
        home = _new_home(keep)
        if compose:
            exit_code = run_on_compose(plan, home, os.environ, console, is_kept=keep is not None)
        else:
            exit_code = run_here(plan, home, console, is_kept=keep is not None)
    except DemoError as error:
        console.print("[red]The demo cannot go on:[/red]", Text(printable(str(error))), highlight=False, soft_wrap=True)
        exit_code = COULD_NOT_TELL
    except KeyboardInterrupt:
        console.print("\nInterrupted; all processes are stopped.")
        exit_code = INTERRUPTED
    if home is not None:
        _leave_home(home, exit_code, console, is_kept=keep is not None)
    sys.exit(exit_code)


def _new_home(keep: Path | None) -> Path:
    """Creates the folder for data and logs. Raises DemoError if it cannot be created."""
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="transactional-messages-"))
    try:
        keep.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise DemoError(f"cannot create the folder {keep} of --keep: {error.strerror}") from None
    return keep.resolve()


def _leave_home(home: Path, exit_code: int, console: Console, *, is_kept: bool) -> None:
    """Deletes the folder. Keeps the folder if `is_kept` is True or if the demo failed."""
    if not is_kept and exit_code in (CONSISTENT, INTERRUPTED):
        shutil.rmtree(home, ignore_errors=True)
    elif any(home.iterdir()):
        console.print(Text(printable(f"Data and logs are in {home}")), soft_wrap=True)
    else:
        home.rmdir()


if __name__ == "__main__":
    with until_interrupted():
        typer.run(main)
