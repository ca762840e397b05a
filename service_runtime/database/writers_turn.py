"""Serializes the writers of a process, with a time-out for each wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from service_runtime.database.taking_locks import Acquire, is_taken


class TurnNotGiven(Exception):
    """The wait for earlier writers timed out. Nothing was written."""


class WritersTurn:
    """A lock with a time-out.

    Without it, SQLite's waiting writers sleep and retry: 16 threads wrote 4 times more slowly, and some waited for seconds. The
    time-out is needed because a writer on a hanging disk would block all other writers forever.
    """

    def __init__(self, timeout_s: float, acquire: Acquire | None) -> None:
        """`timeout_s` bounds the wait for earlier writers. `acquire` is `World.acquire`."""
        self._timeout_s = timeout_s
        self._acquire = acquire
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, timeout_s: float | None = None) -> Iterator[None]:
        """Excludes the other writers of this process. `timeout_s` overrides the default time-out. Raises TurnNotGiven."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        if not is_taken(self._lock, timeout_s, self._acquire):
            raise TurnNotGiven(f"other writers have locked the database for {timeout_s:g} s")
        try:
            yield
        finally:
            self._lock.release()
