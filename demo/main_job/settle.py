"""Waits until every transaction is decided and every order has its credit."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from demo.books import ShopBooks
from demo.commit_log import read_traces
from demo.main_job.told import counting

SETTLE_SECONDS = 180
_POLL_SECONDS = 0.25


def settle(books: ShopBooks, store: Path | None, console: Console) -> bool:
    """Returns whether all was settled in time; prints what is missing if not. `store` is the broker's, if readable."""
    deadline = time.monotonic() + SETTLE_SECONDS
    with counting(console, "orders credited", books.placed()) as show:
        while (credited := books.credited()) < (placed := books.placed()) or _pending(store):
            show(credited, placed)
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        else:
            show(credited, placed)
            return True
    console.print(
        f"[red]After {SETTLE_SECONDS} s {credited} of {placed} orders are credited, and {_pending(store)} half messages are "
        "not decided.[/red]"
    )
    return False


def _pending(store: Path | None) -> int:
    """Returns how many half messages wait for a decision."""
    return 0 if store is None else sum(trace.op is None for trace in read_traces(store))
