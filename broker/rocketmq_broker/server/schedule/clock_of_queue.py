"""By which clock the messages of a queue were stored: store timestamps before and after a leap of the clock do not compare."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class _Stretch(NamedTuple):
    """Messages from a queue offset on, and how far the clock had leapt in all when the first of them was stored."""

    first_offset: int
    stepped_ms: int


class ClockOfQueue:
    """Knows the leaps since the broker started. Of those before, only store timestamps in the future bear witness."""

    def __init__(self) -> None:
        """No leap so far."""
        self._stepped_ms = 0
        self._stretches = deque([_Stretch(0, 0)])

    def stepped(self, step_ms: int, next_offset: int) -> None:
        """The clock leaps, and the next message will have this queue offset."""
        self._stepped_ms += step_ms
        self.ends_at(next_offset)

    def ends_at(self, next_offset: int) -> None:
        """The next message will have this queue offset: those that had it and later ones, if there were any, are lost."""
        stretches = self._stretches
        while stretches and stretches[-1].first_offset >= next_offset:
            stretches.pop()
        if not stretches or stretches[-1].stepped_ms != self._stepped_ms:
            stretches.append(_Stretch(next_offset, self._stepped_ms))

    def stepped_since(self, queue_offset: int) -> int:
        """How far the clock has leapt since that message was stored. Ask in the order of the queue."""
        stretches = self._stretches
        while len(stretches) > 1 and stretches[1].first_offset <= queue_offset:
            stretches.popleft()
        return self._stepped_ms - stretches[0].stepped_ms
