"""Lets the writers of a process write one after the other, and bounds each wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from service_runtime.database.taking_locks import Acquire, is_taken


class TurnNotGiven(Exception):
    """Earlier writers took too long. Nothing was written."""


class WritersTurn:
    """A lock with a bounded wait.

    SQLite lets writers wait by sleeping and retrying: 16 threads wrote 4 times slower so, and some waited for seconds. And a
    writer on a hanging disk would block all others for ever, and with them the threads that answer requests.
    """

    def __init__(self, timeout_s: float, acquire: Acquire | None) -> None:
        """`timeout_s` bounds the wait for earlier writers, `acquire` is the world's."""
        self._timeout_s = timeout_s
        self._acquire = acquire
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, timeout_s: float | None = None) -> Iterator[None]:
        """Excludes the other writers of this process. Waits `timeout_s` at most, or the usual time. Raises TurnNotGiven."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        if not is_taken(self._lock, timeout_s, self._acquire):
            raise TurnNotGiven(f"other writers have kept the database busy for {timeout_s:g} s")
        try:
            yield
        finally:
            self._lock.release()
