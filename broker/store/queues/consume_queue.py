"""A consume queue: where in the commit log the messages of one queue are (RocketMQ's ConsumeQueue).

    COMMITLOGOFFSET 8 | SIZE 4 | TAGSCODE 8        one unit for each queue offset, 300,000 units in a file

New units wait in memory until there are enough for a write, or `write` is called; reading sees both. A queue whose first
offset is not 0 begins with blank units, (0, 0x7FFFFFFF, 0). Nothing here needs to survive a crash: the commit log has it all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from broker.store.log.segments import Segments

UNIT: Final = struct.Struct(">qiq")
UNIT_SIZE: Final = UNIT.size
BLANK_SIZE: Final = 0x7FFFFFFF
"""The size that marks a unit as holding no message."""

_BLANK_UNIT: Final = UNIT.pack(0, BLANK_SIZE, 0)
_TAIL_LIMIT: Final = 64 * 1024
_FILES_SEARCHED: Final = 3
"""How many of the last files are looked through for the end (ConsumeQueue.recover)."""
_PLACES_FOUND: Final = 1024
_BLOCK_UNITS: Final = 3200
_SEARCH_BLOCK: Final = _BLOCK_UNITS * UNIT_SIZE


class Unit(NamedTuple):
    """One entry."""

    commit_log_offset: int
    size: int
    tags_code: int

    @property
    def holds_message(self) -> bool:
        """Whether it can be that of a message. Blank units, zeroed ones and other plain damage cannot."""
        return 0 < self.size < BLANK_SIZE and self.commit_log_offset >= 0


class Unsynced(NamedTuple):
    """What is not on disk yet."""

    files: list[Path]
    directories: list[Path]
    """Those in which names are new."""


class ConsumeQueue:
    """One queue of one topic."""

    def __init__(self, topic: bytes, queue_id: int, segments: Segments) -> None:
        """Empty until `recover`."""
        self.topic = topic
        self.queue_id = queue_id
        self.min_offset = 0
        self.max_offset = 0
        """The queue offset after the last message."""
        self.max_commit_log_offset = 0
        """The commit log offset after the last message."""
        self.places_found: dict[int, int] = {}
        """Queue offset -> commit log offset of some messages whose units are damaged."""
        self._segments = segments
        self._tail = bytearray()
        self._written_offset = 0
        self._unsynced_from: int | None = None
        self._has_new_file = False
        self.was_cut = False
        """Whether units that were there must be found in the commit log again."""

    def recover(self, synced_offset: int | None) -> list[str]:
        """Finds the last unit; says what had to be mended. Raises DamagedStore, OSError.

        `synced_offset` is a max offset once known to be on disk; the search begins there, without it in the last files.
        """
        mended = self._segments.load(may_lack_files=True) + self._cut_at_gap()
        starts = self._segments.starts
        first = starts[max(len(starts) - _FILES_SEARCHED, 0)] if starts else 0
        if synced_offset is not None and self._segments.has(synced_offset * UNIT_SIZE) and self._has_unit_before(synced_offset):
            first = synced_offset * UNIT_SIZE
        self._end_at(self._find_end(first))
        self.min_offset = self._segments.min_offset // UNIT_SIZE
        return mended

    def fill_gap(self, queue_offset: int, commit_log_offset: int, size: int) -> int:
        """Lets the offsets from the end up to `queue_offset` point to a damaged place in the log; the number of them."""
        lost = range(self.max_offset, queue_offset)
        for offset in lost:
            self.put(offset, commit_log_offset, size, 0)
        return len(lost)

    def put(self, queue_offset: int, commit_log_offset: int, size: int, tags_code: int) -> None:
        """Adds the unit of the queue offset; one that is there already changes nothing.

        Offsets skipped are filled with blank units.
        """
        if queue_offset != self.max_offset:
            if queue_offset < self.max_offset:
                return
            self._fill_until(queue_offset)
        self._tail += UNIT.pack(commit_log_offset, size, tags_code)
        self.max_offset = queue_offset + 1
        self.max_commit_log_offset = commit_log_offset + size
        if len(self._tail) >= _TAIL_LIMIT and self._segments.has(self._written_offset * UNIT_SIZE):
            with suppress(OSError):
                # What a full disk refuses waits in memory; without space the commit log does not grow either.
                self.write()

    def write(self) -> None:
        """Hands what waits in memory to the file system. What cannot be written goes on waiting; raises OSError then."""
        while self._tail:
            position = self._written_offset * UNIT_SIZE
            if not self._segments.has(position):
                self._segments.create_lazily(self._segments.start_of(position))
                self._has_new_file = True
            room = self._segments.segment_size - position % self._segments.segment_size
            part = self._tail[:room]
            self._segments.write(position, part)
            self._note_written(self._written_offset)
            del self._tail[:room]
            self._written_offset += len(part) // UNIT_SIZE

    def take_unsynced(self) -> Unsynced:
        """What was written since the last time, to be synced by the caller."""
        if self._unsynced_from is None:
            return Unsynced([], [])
        paths = self._segments.paths_between(self._unsynced_from * UNIT_SIZE, self._written_offset * UNIT_SIZE)
        directory = self._segments.directory
        # consumequeue/topic/0: each may be new.
        directories = [directory, *directory.parents[:3]] if self._has_new_file else []
        self._unsynced_from = None
        self._has_new_file = False
        return Unsynced(paths, directories)

    def units(self, queue_offset: int, count: int) -> list[Unit]:
        """The units from an offset on; fewer at the end."""
        return list(map(Unit._make, UNIT.iter_unpack(self._bytes(queue_offset, count))))

    def unit(self, queue_offset: int) -> Unit | None:
        """One unit, or None where there is none."""
        if not self._segments.min_offset // UNIT_SIZE <= queue_offset < self.max_offset:
            return None
        found = self._bytes(queue_offset, 1)
        return Unit._make(UNIT.unpack(found)) if found else None

    def note_found(self, queue_offset: int, commit_log_offset: int) -> None:
        """Remembers where a message is whose unit is damaged, so that it need not be searched for again; forgets an old one."""
        if len(self.places_found) >= _PLACES_FOUND:
            del self.places_found[next(iter(self.places_found))]
        self.places_found[queue_offset] = commit_log_offset

    def start_of_next_file(self, queue_offset: int) -> int:
        """The first offset in the file after the one of this offset (rollNextFile), or the end."""
        units_per_file = self._segments.segment_size // UNIT_SIZE
        return min(queue_offset - queue_offset % units_per_file + units_per_file, self.max_offset)

    def correct_min_offset(self, commit_log_min_offset: int) -> None:
        """Moves `min_offset` to the first message that the commit log still has (ConsumeQueue.correctMinOffset)."""
        self.min_offset = self._first_where(
            self._first_that_is_not_blank(), lambda unit: unit.commit_log_offset >= commit_log_min_offset
        )

    def _first_that_is_not_blank(self) -> int:
        """A queue whose first messages expired may begin with blank units."""
        offset = self._segments.min_offset // UNIT_SIZE if self._segments.starts else self._written_offset
        while units := self.units(offset, _BLOCK_UNITS):
            for unit in units:
                if unit.size != BLANK_SIZE:
                    return offset
                offset += 1
        return offset

    def truncate(self, commit_log_end: int) -> int:
        """Drops the units that point past the end of the commit log; the number dropped."""
        return self.truncate_to(self.max_offset - self._count_beyond(commit_log_end))

    def truncate_to(self, queue_offset: int) -> int:
        """Drops the units from an offset on; the number dropped. On disk when it returns."""
        dropped = self.max_offset - queue_offset
        if dropped > 0:
            self.write()
            self._segments.truncate(queue_offset * UNIT_SIZE)
            self._end_at(queue_offset)
        return dropped

    def forget_expired(self, commit_log_min_offset: int) -> list[Path]:
        """Forgets the files whose messages the commit log no longer has, but never the last one; the caller deletes them."""
        self.correct_min_offset(commit_log_min_offset)
        if not self._segments.starts:
            return []
        return self._segments.forget_before(min(self.min_offset * UNIT_SIZE, self._segments.starts[-1]))

    def destroy(self) -> None:
        """Deletes the queue."""
        self._tail.clear()
        self.places_found.clear()
        self._segments.destroy()
        self.min_offset = self.max_offset = self._written_offset = self.max_commit_log_offset = 0

    def forget(self) -> list[Path]:
        """What to delete of a queue that nobody uses any more, in this order."""
        return self._segments.forget()

    def start_anew(self) -> None:
        """Drops all units: they must be found in the commit log again."""
        self.destroy()
        self.was_cut = True

    @property
    def is_empty(self) -> bool:
        """Whether no unit was ever put."""
        return self.max_offset == 0 and not self._segments.starts

    def find_first(self, is_beyond: Callable[[Unit], bool]) -> int:
        """The first offset whose unit meets the condition, which must hold for all later ones; `max_offset` if none does.

        One that holds no message is not asked: it counts like the next that does, and at the end as one that meets it.
        """
        return self._first_where(self.min_offset, is_beyond)

    def _fill_until(self, queue_offset: int) -> None:
        if self.max_offset == 0 and not self._segments.starts:
            start = self._segments.start_of(queue_offset * UNIT_SIZE) // UNIT_SIZE
            self._written_offset = self.max_offset = start
            self.min_offset = queue_offset
        self._tail += _BLANK_UNIT * (queue_offset - self.max_offset)
        self.max_offset = queue_offset

    def _bytes(self, queue_offset: int, count: int) -> bytes:
        count = min(count, self.max_offset - queue_offset)
        if count <= 0:
            return b""
        written = min(count, self._written_offset - queue_offset)
        if written <= 0:
            at = (queue_offset - self._written_offset) * UNIT_SIZE
            return bytes(self._tail[at : at + count * UNIT_SIZE])
        found = self._segments.read(queue_offset * UNIT_SIZE, written * UNIT_SIZE)
        if len(found) == written * UNIT_SIZE and written < count:
            return found + self._tail[: (count - written) * UNIT_SIZE]
        return found[: len(found) - len(found) % UNIT_SIZE]

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
        """The first unit that holds a message, with its offset: a damaged page must not lead a search past what is intact."""
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

    def _count_beyond(self, commit_log_end: int) -> int:
        """How many of the last units point past there. Looked at from the end: one that is damaged must not mislead a search."""
        count = 0
        for unit in self._backwards():
            if unit.size == BLANK_SIZE or unit.commit_log_offset + unit.size <= commit_log_end:
                break
            count += 1
        return count

    def _backwards(self) -> Iterator[Unit]:
        end, first = self.max_offset, self._segments.min_offset // UNIT_SIZE
        while end > first:
            begin = max(self._segments.start_of((end - 1) * UNIT_SIZE) // UNIT_SIZE, end - _BLOCK_UNITS)
            yield from reversed(self.units(begin, end - begin))
            end = begin

    def _cut_at_gap(self) -> list[str]:
        """Every file but the last is full: what follows one that is missing, or is not full, has to be rebuilt."""
        for start, following in pairwise(self._segments.starts):
            end = start + self._segments.segment_size
            if following != end or not self._has_unit_before(end // UNIT_SIZE):
                self._segments.truncate(following)
                self.was_cut = True
                return [f"consume queue {self.topic.decode()}/{self.queue_id} lacks units before offset {following // UNIT_SIZE}"]
        return []

    def _find_end(self, first: int) -> int:
        """From that position on, the offset of the first place that holds no unit."""
        position = first
        while self._segments.has(position):
            content = self._segments.read(position, _SEARCH_BLOCK)
            for commit_log_offset, size, _ in UNIT.iter_unpack(content[: len(content) - len(content) % UNIT_SIZE]):
                if commit_log_offset < 0 or size <= 0:
                    return position // UNIT_SIZE
                position += UNIT_SIZE
            if not content:
                break
        return position // UNIT_SIZE

    def _has_unit_before(self, queue_offset: int) -> bool:
        before = self._segments.read((queue_offset - 1) * UNIT_SIZE, UNIT_SIZE)
        return len(before) == UNIT_SIZE and UNIT.unpack(before)[1] > 0

    def _end_at(self, queue_offset: int) -> None:
        self._written_offset = self.max_offset = queue_offset
        last = self.unit(queue_offset - 1)
        self.max_commit_log_offset = last.commit_log_offset + last.size if last and last.size != BLANK_SIZE else 0

    def _note_written(self, queue_offset: int) -> None:
        self._unsynced_from = queue_offset if self._unsynced_from is None else min(self._unsynced_from, queue_offset)
