"""A consume queue, which contains the commit log offsets of one queue's messages (RocketMQ's ConsumeQueue).

    COMMITLOGOFFSET 8 | SIZE 4 | TAGSCODE 8        one unit for each queue offset, 300,000 units in a file

New units wait in memory until there are enough for a write, or until `write` is called. Reads include them. A queue whose first
offset is not 0 begins with blank units, (0, 0x7FFFFFFF, 0). After a crash, a consume queue can be rebuilt from the commit log.
"""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from librt.strings import BytesWriter, write_i32_be, write_i64_be

from rocketmq_broker.store.log.segments import Segments
from rocketmq_broker.store.queues.dispatch import DispatchRequest
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE, UnitFiles, Unsynced

UNIT: Final = struct.Struct(">qiq")
SIZE_AT: Final = 8
TAGS_CODE_AT: Final = 12
"""The positions of the size (`SIZE_AT`) and the tags code (`TAGS_CODE_AT`) in a unit."""
BLANK_SIZE: Final = 0x7FFFFFFF
"""The value of the size field in a unit without a message."""

_BLANK_UNIT: Final = UNIT.pack(0, BLANK_SIZE, 0)
_BLOCK_UNITS: Final = 3200


class Unit(NamedTuple):
    """One unit of a consume queue, which points to a message in the commit log."""

    commit_log_offset: int
    size: int
    tags_code: int

    @property
    def holds_message(self) -> bool:
        """Returns whether the unit may point to a message. Returns False if it is blank, zeroed or obviously damaged."""
        return 0 < self.size < BLANK_SIZE and self.commit_log_offset >= 0


class ConsumeQueue:
    """One queue of one topic. After a crash or damage, `rocketmq_broker.store.recovery` repairs it."""

    def __init__(self, topic: bytes, queue_id: int, segments: Segments) -> None:
        """Creates an empty queue. Recovery sets its end."""
        self.topic = topic
        self.queue_id = queue_id
        self.min_offset = 0
        self.max_offset = 0
        """The queue offset after the last message."""
        self.max_commit_log_offset = 0
        """The commit log offset after the last message."""
        self.files = UnitFiles(segments)

    def end_at(self, queue_offset: int) -> None:
        """Sets the queue's end. The files must contain all units before `queue_offset`."""
        self.files.end_at(queue_offset)
        self.max_offset = queue_offset
        last = self.unit(queue_offset - 1)
        self.max_commit_log_offset = last.commit_log_offset + last.size if last and last.size != BLANK_SIZE else 0

    def put(self, queue_offset: int, commit_log_offset: int, size: int, tags_code: int) -> None:
        """Adds the unit at the queue offset, unless it exists. Adds blank units for skipped offsets."""
        if queue_offset != self.max_offset:
            if queue_offset < self.max_offset:
                return
            self._fill_until(queue_offset)
        self.files.append(UNIT.pack(commit_log_offset, size, tags_code))
        self.max_offset = queue_offset + 1
        self.max_commit_log_offset = commit_log_offset + size

    def put_run(self, requests: Sequence[DispatchRequest]) -> None:
        """Adds the units of successive messages."""
        first, last = requests[0], requests[-1]
        if first.queue_offset != self.max_offset or last.queue_offset - first.queue_offset != len(requests) - 1:
            for each in requests:
                self.put(each.queue_offset, each.commit_log_offset, each.size, each.tags_code)
            return
        units = BytesWriter()
        for each in requests:
            write_i64_be(units, each.commit_log_offset)
            write_i32_be(units, each.size)
            write_i64_be(units, each.tags_code)
        self.files.append(units.getvalue())
        self.max_offset = last.queue_offset + 1
        self.max_commit_log_offset = last.commit_log_offset + last.size

    def repair(self, queue_offset: int, unit: Unit, *, may_write: bool) -> None:
        """Replaces a damaged unit with the correct one. The unit stays in memory if `may_write` is False or the write fails."""
        self.files.replace(queue_offset, UNIT.pack(*unit), may_write=may_write)
        if queue_offset == self.max_offset - 1:
            self.max_commit_log_offset = unit.commit_log_offset + unit.size

    def write(self) -> None:
        """Writes the units that wait in memory to the files. Units that cannot be written stay in memory. Raises OSError."""
        self.files.write()

    def take_unsynced(self) -> Unsynced:
        """Returns the files and directories written since the last call, for the caller to sync."""
        return self.files.take_unsynced()

    def units(self, queue_offset: int, count: int) -> list[Unit]:
        """Returns at most `count` units from an offset, or fewer at the end of a file or of the queue."""
        return list(map(Unit._make, UNIT.iter_unpack(self.encoded_units(queue_offset, count))))

    def encoded_units(self, queue_offset: int, count: int) -> bytes:
        """Returns at most `count` encoded units from an offset, so that a caller can read many units without creating objects."""
        return self.files.read(queue_offset, count)

    def unit(self, queue_offset: int) -> Unit | None:
        """Returns the unit at an offset, or None if there is none."""
        if not self.files.segments.min_offset // UNIT_SIZE <= queue_offset < self.max_offset:
            return None
        found = self.files.read(queue_offset, 1)
        return Unit._make(UNIT.unpack(found)) if found else None

    def start_of_next_file(self, queue_offset: int) -> int:
        """Returns the first offset in the next file, or the end of the queue (rollNextFile)."""
        units_per_file = self.files.segments.segment_size // UNIT_SIZE
        return min(queue_offset - queue_offset % units_per_file + units_per_file, self.max_offset)

    def correct_min_offset(self, commit_log_min_offset: int) -> None:
        """Sets `min_offset` to the offset of the first message still in the commit log (ConsumeQueue.correctMinOffset)."""
        self.min_offset = self._first_where(
            self._first_that_is_not_blank(), lambda unit: unit.commit_log_offset >= commit_log_min_offset
        )

    def find_first(self, is_beyond: Callable[[Unit], bool]) -> int:
        """Returns the first offset whose unit meets the condition, or `max_offset` if there is none. Uses a binary search.

        All units after the first match must match too. A unit without a message is treated like the next unit with a message. If
        there is no such unit, it counts as a match.
        """
        return self._first_where(self.min_offset, is_beyond)

    def forget_expired(self, commit_log_min_offset: int) -> list[Path]:
        """Drops the files whose messages have expired, except the last file. Returns the files to delete."""
        self.correct_min_offset(commit_log_min_offset)
        if not self.files.segments.starts:
            return []
        return self.files.segments.forget_before(min(self.min_offset * UNIT_SIZE, self.files.segments.starts[-1]))

    def destroy(self) -> None:
        """Deletes all files of the queue."""
        self.files.destroy()
        self.min_offset = self.max_offset = self.max_commit_log_offset = 0

    def forget(self) -> list[Path]:
        """Closes and drops all files. Returns the paths to delete, in deletion order."""
        return self.files.segments.forget()

    @property
    def is_empty(self) -> bool:
        """Returns whether the queue never had a unit."""
        return self.max_offset == 0 and not self.files.segments.starts

    def _fill_until(self, queue_offset: int) -> None:
        if self.is_empty:
            start = self.files.segments.start_of(queue_offset * UNIT_SIZE) // UNIT_SIZE
            self.files.end_at(start)
            self.max_offset = start
            self.min_offset = queue_offset
        self.files.append(_BLANK_UNIT * (queue_offset - self.max_offset))
        self.max_offset = queue_offset

    def _first_that_is_not_blank(self) -> int:
        """Returns the first offset whose unit is not blank. Units at the start may be blank if their messages have expired."""
        offset = self.files.first_offset
        while units := self.units(offset, _BLOCK_UNITS):
            for unit in units:
                if unit.size != BLANK_SIZE:
                    return offset
                offset += 1
        return offset

    def _first_where(self, first: int, is_beyond: Callable[[Unit], bool]) -> int:
        low, high = first, self.max_offset
        while low < high:
            middle = (low + high) // 2
            found = self._next_message(middle, high)
            if found is None or is_beyond(found[1]):
                high = middle
            else:
                low = found[0] + 1
        return low

    def _next_message(self, first: int, end: int) -> tuple[int, Unit] | None:
        """Returns the offset and the unit of the first message in the range, or None if there is none.

        Skips units without a message, so that a damaged page cannot mislead a binary search.
        """
        unit = self.unit(first)
        if unit is not None and unit.holds_message:
            return first, unit
        while first < end:
            for offset, unit in enumerate(self.units(first, min(end - first, _BLOCK_UNITS)), first):
                first = offset + 1
                if unit.holds_message:
                    return offset, unit
            if self.unit(first) is None:
                first = self.start_of_next_file(first)
        return None
