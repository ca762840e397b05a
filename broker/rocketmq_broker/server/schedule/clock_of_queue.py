"""Tracks steps of the system time per queue, because store timestamps before and after a step are not comparable."""

from collections import deque
from typing import NamedTuple


class _Stretch(NamedTuple):
    """The messages that were stored between two steps of the system time. `stepped_ms` is the sum of all earlier steps."""

    first_offset: int
    stepped_ms: int


class ClockOfQueue:
    """Records the steps of the system time since the broker started.

    Earlier steps can only be detected if store timestamps are in the future.
    """

    def __init__(self) -> None:
        """Creates a record without steps."""
        self._stepped_ms = 0
        self._stretches = deque([_Stretch(0, 0)])

    def stepped(self, step_ms: int, next_offset: int) -> None:
        """Records a step. `next_offset` is the queue offset of the first message after the step."""
        self._stepped_ms += step_ms
        self.ends_at(next_offset)

    def ends_at(self, next_offset: int) -> None:
        """Records that the next message gets the queue offset `next_offset`, because later messages are lost."""
        stretches = self._stretches
        while stretches and stretches[-1].first_offset >= next_offset:
            stretches.pop()
        if not stretches or stretches[-1].stepped_ms != self._stepped_ms:
            stretches.append(_Stretch(next_offset, self._stepped_ms))

    def stepped_since(self, queue_offset: int) -> int:
        """Returns the sum of the steps, in milliseconds, since the message at `queue_offset` was stored.

        The offsets must ascend from call to call.
        """
        stretches = self._stretches
        while len(stretches) > 1 and stretches[1].first_offset <= queue_offset:
            stretches.popleft()
        return self._stepped_ms - stretches[0].stepped_ms
