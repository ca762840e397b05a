"""Limits the time for requests in one turn of the event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

TURN_S: Final = 0.01
"""The maximum time in seconds that one turn spends on requests.

The event loop is blocked for less than 50 ms, even if several servers share it and a turn overruns by one request.
"""


class Turn:
    """Limits the time that a server's connections use in one turn of the event loop.

    Work beyond the limit is postponed to a later turn. Later turns call the longest-waiting callbacks first. A callback
    that is postponed again is called last.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, steady_ns: Callable[[], int], seconds: float = TURN_S) -> None:
        """Creates a limit of `seconds` per turn. `steady_ns` is a monotonic clock in nanoseconds."""
        self._loop = loop
        self._length_ns = int(seconds * 1e9)
        self._now_ns = steady_ns
        self._ends_ns: int | None = None
        self._waiting: deque[Callable[[], None]] = deque()

    def is_over(self) -> bool:
        """Returns True if the time limit is reached. The first call starts the turn."""
        if self._ends_ns is None:
            self._begin()
            return False
        return self._now_ns() >= self._ends_ns

    def later(self, callback: Callable[[], None]) -> None:
        """Calls the callback in a later turn."""
        self._waiting.append(callback)
        if self._ends_ns is None:
            self._begin()

    def _begin(self) -> None:
        self._ends_ns = self._now_ns() + self._length_ns
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        """Ends the turn, and calls the postponed callbacks in a new turn."""
        self._ends_ns = None
        if self._waiting:
            self._begin()
            self._waiting.popleft()()
            while self._waiting and not self.is_over():
                self._waiting.popleft()()
