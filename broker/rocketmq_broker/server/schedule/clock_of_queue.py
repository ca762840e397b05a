"""The clock's leaps between a queue's messages: store timestamps before and after a leap do not compare."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class _Stretch(NamedTuple):
    """Messages starting at a queue offset, and the sum of the clock's leaps when the first was stored."""

    first_offset: int
    stepped_ms: int


class ClockOfQueue:
    """The leaps since the broker started. Only store timestamps in the future are evidence of earlier ones."""

    def __init__(self) -> None:
        """Starts without leaps."""
        self._stepped_ms = 0
        self._stretches = deque([_Stretch(0, 0)])

    def stepped(self, step_ms: int, next_offset: int) -> None:
        """Notes a leap of the clock before the message that gets this queue offset."""
        self._stepped_ms += step_ms
        self.ends_at(next_offset)

    def ends_at(self, next_offset: int) -> None:
        """Notes that the next message gets this queue offset: any that had it, and later ones, are lost."""
        stretches = self._stretches
        while stretches and stretches[-1].first_offset >= next_offset:
            stretches.pop()
        if not stretches or stretches[-1].stepped_ms != self._stepped_ms:
            stretches.append(_Stretch(next_offset, self._stepped_ms))

    def stepped_since(self, queue_offset: int) -> int:
        """Returns the sum of leaps since that message was stored. Ask in the order of the queue."""
        stretches = self._stretches
        while len(stretches) > 1 and stretches[1].first_offset <= queue_offset:
            stretches.popleft()
        return self._stepped_ms - stretches[0].stepped_ms
