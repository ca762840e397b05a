"""The offsets of the group CID_RMQ_SYS_TRANS in the half queue and the op queue.

A starting broker reads both queues from these offsets. A half message is undecided unless one of the op messages refers to it.
The half queue's offset is therefore that of the oldest pending half message. The op queue's offset is that of the first op
message that refers to this half message or a later one.
"""

from array import array
from typing import Final, NamedTuple

_NONE: Final = -1
"""The value stored for an op message that was not read."""


class TransactionOffsets(NamedTuple):
    """The offsets of CID_RMQ_SYS_TRANS in queue 0 of the half topic and of the op topic."""

    half: int
    op: int


class OpWindow:
    """Maps each op message at or after the op queue's offset to a half queue offset. Takes 8 bytes for each op message."""

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
        """Adds an op message that was appended. `half_queue_offset` is the offset of the last half message to which it refers."""
        missing = op_queue_offset - self._first - len(self._named)
        if missing > 0:
            self._named.extend([_NONE] * missing)
        if missing >= 0:
            self._named.append(half_queue_offset)

    def take_back(self) -> None:
        """Removes the last op message, which was lost before it was written to disk."""
        if self._named:
            self._named.pop()
            self._passed = min(self._passed, len(self._named))
        else:
            self._first -= 1

    def advance(self, half_queue_offset: int) -> int:
        """Returns the queue offset of the first op message that refers to a half message at or after `half_queue_offset`.

        Drops all op messages before it.
        """
        named, passed = self._named, self._passed
        while passed < len(named) and named[passed] < half_queue_offset:
            passed += 1
        if passed > 1024 and passed * 2 > len(named):
            del named[:passed]
            self._first += passed
            passed = 0
        self._passed = passed
        return self._first + passed
