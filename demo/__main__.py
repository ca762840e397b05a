"""python -m demo: orders become credits while processes are killed; exit code 0 only if every order has its credit once."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import stamina
import typer
from rich.console import Console

from demo.processes import ProcessFailed
from demo.scenario import Plan, run_here, run_on_compose


def main(
    orders: Annotated[int, typer.Option(min=10, help="How many orders to place.")] = 400,
    concurrency: Annotated[int, typer.Option(min=1, help="How many customers order at once.")] = 16,
    lost_commit_every: Annotated[
        int, typer.Option(min=1, help="The order service dies between local commit and COMMIT at every so-manieth order.")
    ] = 60,
    keep: Annotated[Path | None, typer.Option(help="Keep data and logs in this folder, which must not exist.")] = None,
    compose: Annotated[
        bool, typer.Option("--compose", help="Use services that run already, as the environment names them; kill nothing.")
    ] = False,
) -> None:
    """Place orders, kill processes meanwhile, wait for the credits, and let Spark compare both databases."""
    stamina.instrumentation.set_on_retry_hooks([])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console()
    plan = Plan(orders=orders, concurrency=concurrency, lost_commit_every=lost_commit_every)
    try:
        with _home(keep) as home:
            exit_code = run_on_compose(plan, home, os.environ, console) if compose else run_here(plan, home, console)
    except ProcessFailed as error:
        console.print(f"[red]The demo could not go on:[/red] {error}", highlight=False)
        exit_code = 2
    except KeyboardInterrupt:
        console.print("\nInterrupted; all processes are stopped.")
        exit_code = 130
    sys.exit(exit_code)


@contextmanager
def _home(keep: Path | None) -> Iterator[Path]:
    """A folder for data and logs, gone in the end unless it is to be kept."""
    if keep is not None:
        keep.mkdir(parents=True)
        yield keep.resolve()
    else:
        with tempfile.TemporaryDirectory(prefix="transactional-messages-") as folder:
            yield Path(folder)


if __name__ == "__main__":
    typer.run(main)
