"""Lets one writer of a process write after the other, and bounds how long each waits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TurnNotGiven(Exception):
    """Earlier writers took too long. Nothing was written."""


class WritersTurn:
    """A lock that is given up after a while.

    SQLite lets writers wait by sleeping and trying again: 16 threads wrote 4 times slower so, and some waited for seconds. And
    one that hangs (its disk does) would hold all others for ever, and with them the threads that answer requests.
    """

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s` is how long one writer waits for those before."""
        self._timeout_s = timeout_s
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, timeout_s: float | None = None) -> Iterator[None]:
        """Alone among the writers of this process, after `timeout_s` at most, or the usual time. Raises TurnNotGiven."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        if not self._lock.acquire(timeout=timeout_s):
            raise TurnNotGiven(f"other writers have kept the database busy for {timeout_s:g} s")
        try:
            yield
        finally:
            self._lock.release()
