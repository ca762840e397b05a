"""Waits until every transaction is decided and every order has its credit."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from demo.books import Books
from demo.commit_log import read_traces
from demo.progress import counting

SETTLE_SECONDS = 180
_POLL_SECONDS = 0.25


def settle(books: Books, store: Path | None, console: Console) -> bool:
    """Whether it came to that in time; `store` is the broker's, where it can be read."""
    deadline = time.monotonic() + SETTLE_SECONDS
    with counting(console, "orders credited", books.placed()) as show:
        while (credited := books.credited()) < (placed := books.placed()) or _pending(store):
            show(credited, placed)
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        show(credited, placed)
    return True


def _pending(store: Path | None) -> int:
    """How many half messages wait for a decision."""
    return 0 if store is None else sum(trace.op is None for trace in read_traces(store))
