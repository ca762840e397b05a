"""Stores the state of one queue of parked messages: the group and the latest mark of each message."""

from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Final

_NO_GROUP: Final = 0
"""The group number of a message that an operator has handled, or that cannot be read."""
_NO_MARK: Final = -1
_EXPIRED_AT_ONCE: Final = 100_000


class ParkedQueue:
    """The parked messages of one queue. Each message takes twelve bytes of memory."""

    def __init__(self, first_offset: int = 0) -> None:
        self._first = first_offset
        self._groups = array("I")
        self._marks = array("q")
        self._names = [""]
        self._numbers: dict[str, int] = {}
        self._untreated: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def end_offset(self) -> int:
        """Returns the queue offset after the last known message."""
        return self._first + len(self._groups)

    @property
    def untreated(self) -> Mapping[str, int]:
        """Returns the number of readable messages without a mark, keyed by group. The number may be 0."""
        return self._untreated

    def add(self, queue_offset: int, group: str, count: int = 1) -> None:
        """Adds `count` messages of a group, starting at `queue_offset`. Skipped offsets count as unreadable messages."""
        missing = queue_offset - self.end_offset
        if missing > 0:
            self._append(_NO_GROUP, missing)
        if missing >= 0:
            self._append(self._number(group), count)
            self._untreated[group] += count

    def mark(self, queue_offset: int, mark_offset: int) -> None:
        """Records the mark of a message. `mark_offset` is the queue offset of the mark."""
        index = queue_offset - self._first
        if 0 <= index < len(self._marks):
            self._marks[index] = mark_offset
            self._forget(index)

    def latest_mark(self, queue_offset: int) -> int | None:
        """Returns the queue offset of the message's latest mark, or None if it has no mark."""
        index = queue_offset - self._first
        if not 0 <= index < len(self._marks) or self._marks[index] == _NO_MARK:
            return None
        return self._marks[index]

    def expire(self, first_offset: int) -> None:
        """Removes messages before `first_offset`, at most 100,000 per call."""
        count = min(first_offset - self._first, len(self._groups), _EXPIRED_AT_ONCE)
        if count <= 0:
            return
        for number, messages in Counter(self._groups[:count]).items():
            if number != _NO_GROUP:
                self._untreated[self._names[number]] -= messages
        del self._groups[:count]
        del self._marks[:count]
        self._first += count

    def _append(self, number: int, count: int) -> None:
        self._groups.extend(array("I", [number]) * count)
        self._marks.extend(array("q", [_NO_MARK]) * count)

    def _number(self, group: str) -> int:
        number = self._numbers.get(group)
        if number is None:
            number = self._numbers[group] = len(self._names)
            self._names.append(group)
        return number

    def _forget(self, index: int) -> None:
        number, self._groups[index] = self._groups[index], _NO_GROUP
        if number != _NO_GROUP:
            self._untreated[self._names[number]] -= 1
