"""The offsets of the group CID_RMQ_SYS_TRANS in the half queue and the op queue.

A broker that starts reads both queues from these offsets. It takes a half message for undecided unless one of the op messages
names it. So the half queue's offset stops at the oldest pending half message, and the op queue's offset at the first op message
that names this half message or a later one.
"""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

_NONE: Final = -1
"""The entry of an op message that was not read: it names no half message."""


class TransactionOffsets(NamedTuple):
    """Offsets of CID_RMQ_SYS_TRANS on queue 0 of both topics."""

    half: int
    op: int


class OpWindow:
    """The op messages that the op offset has not passed: 8 bytes each, found by their queue offset."""

    def __init__(self, first_offset: int = 0) -> None:
        self._first = first_offset
        self._passed = 0
        self._named = array("q")

    @property
    def next_offset(self) -> int:
        """Returns the expected queue offset of the next op message."""
        return self._first + len(self._named)

    def __len__(self) -> int:
        return len(self._named) - self._passed

    def add(self, op_queue_offset: int, half_queue_offset: int) -> None:
        """Adds an appended op message; `half_queue_offset` is the last half message that it names."""
        missing = op_queue_offset - self._first - len(self._named)
        if missing > 0:
            self._named.extend([_NONE] * missing)
        if missing >= 0:
            self._named.append(half_queue_offset)

    def take_back(self) -> None:
        """Removes the last op message, which was lost before it reached the disk."""
        if self._named:
            self._named.pop()
            self._passed = min(self._passed, len(self._named))
        else:
            self._first -= 1

    def advance(self, half_queue_offset: int) -> int:
        """Passes the op messages before the first that names a half message at or after an offset; returns its own offset."""
        named, passed = self._named, self._passed
        while passed < len(named) and named[passed] < half_queue_offset:
            passed += 1
        if passed > 1024 and passed * 2 > len(named):
            del named[:passed]
            self._first += passed
            passed = 0
        self._passed = passed
        return self._first + passed
