"""How far the group CID_RMQ_SYS_TRANS may say it has consumed the half queue and the op queue.

RocketMQ goes on from there: it takes every half message from the half offset on for undecided, unless one of the op messages
from the op offset on names it. So the half offset stops at the oldest undecided half message, and the op offset at the first
op message that names a half message from there on.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple


class TransactionOffsets(NamedTuple):
    """Offsets of CID_RMQ_SYS_TRANS on queue 0 of both topics."""

    half: int
    op: int


class OpWindow:
    """The op messages that the op offset has not passed yet: 8 bytes each, found by their queue offset."""

    def __init__(self, first_offset: int = 0) -> None:
        self._first = first_offset
        self._passed = 0
        self._half_offsets = array("q")

    @property
    def next_offset(self) -> int:
        """The queue offset that the next op message is expected to have."""
        return self._first + len(self._half_offsets)

    def __len__(self) -> int:
        return len(self._half_offsets) - self._passed

    def add(self, op_offset: int, half_offset: int) -> None:
        """An op message and the (last) half message it names. One that was not seen before it names none."""
        while self.next_offset < op_offset:
            self._half_offsets.append(-1)
        if self.next_offset == op_offset:
            self._half_offsets.append(half_offset)

    def take_back(self) -> None:
        """The last op message was lost before it reached the disk."""
        if self._half_offsets:
            self._half_offsets.pop()
            self._passed = min(self._passed, len(self._half_offsets))
        else:
            self._first -= 1

    def advance(self, half_offset: int) -> int:
        """Passes the op messages before the first that names a half message from `half_offset` on; returns its offset."""
        half_offsets, passed = self._half_offsets, self._passed
        while passed < len(half_offsets) and half_offsets[passed] < half_offset:
            passed += 1
        if passed > 1024 and passed * 2 > len(half_offsets):
            del half_offsets[:passed]
            self._first += passed
            passed = 0
        self._passed = passed
        return self._first + passed
