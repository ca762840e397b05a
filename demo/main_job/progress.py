"""A progress bar that says how many of how many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar while the block runs; gives the function to call with the count so far and the total."""
    columns = (TextColumn("{task.description:16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=total)
        yield lambda completed, total: progress.update(task, completed=completed, total=total)
