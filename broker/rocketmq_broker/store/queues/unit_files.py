"""Stores the units of one consume queue in files. New units wait in memory until there are enough for a write."""

from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from rocketmq_broker.store.log.segments import Segments

UNIT_SIZE: Final = 20
_TAIL_LIMIT: Final = 64 * 1024
MAX_REFUSED_UNITS: Final = 1024
"""The maximum number of repaired units kept in memory because the disk refused them."""


class Unsynced(NamedTuple):
    """The files and directories to sync."""

    files: list[Path]
    directories: list[Path]
    """The directories with new names."""


class UnitFiles:
    """The units of one queue, of 20 bytes each, in files and in memory. Units are found by queue offset."""

    def __init__(self, segments: Segments) -> None:
        """Creates an empty queue. Call `end_at` to set its end."""
        self.segments = segments
        self._tail = bytearray()
        self._written_offset = 0
        self._unsynced_from: int | None = None
        self._has_new_file = False
        self._refused: dict[int, bytes] = {}

    @property
    def first_offset(self) -> int:
        """Returns the offset of the first unit in the files, or in memory if there are no files."""
        return self.segments.min_offset // UNIT_SIZE if self.segments.starts else self._written_offset

    @property
    def end(self) -> int:
        """Returns the offset after the last unit."""
        return self._written_offset + len(self._tail) // UNIT_SIZE

    def end_at(self, queue_offset: int) -> None:
        """Sets the end and drops the units in memory. The files must contain all units before `queue_offset`."""
        self._tail.clear()
        self._written_offset = queue_offset

    def append(self, units: bytes) -> None:
        """Adds units at the end. They are written to the files once enough of them are waiting."""
        self._tail += units
        if len(self._tail) >= _TAIL_LIMIT and self.segments.has(self._written_offset * UNIT_SIZE):
            with suppress(OSError):
                # If the disk is full, the units stay in memory. Their number is bounded, as the commit log cannot grow either.
                self.write()

    def write(self) -> None:
        """Writes the units in memory to the files. Units that cannot be written stay in memory. Raises OSError."""
        while self._tail:
            position = self._written_offset * UNIT_SIZE
            if not self.segments.has(position):
                self.segments.create(self.segments.start_of(position), is_durable=False)
                self._has_new_file = True
            room = self.segments.segment_size - position % self.segments.segment_size
            part = self._tail[:room]
            self.segments.write(position, part)
            self._note_written(self._written_offset)
            del self._tail[:room]
            self._written_offset += len(part) // UNIT_SIZE

    def replace(self, queue_offset: int, unit: bytes, *, may_write: bool) -> None:
        """Replaces a unit. Keeps it in memory if `may_write` is False or the file cannot be written.

        At most `MAX_REFUSED_UNITS` replaced units are kept in memory; the oldest are dropped.
        """
        at = (queue_offset - self._written_offset) * UNIT_SIZE
        if at >= 0:
            self._tail[at : at + UNIT_SIZE] = unit
            return
        try:
            if may_write:
                self.segments.write(queue_offset * UNIT_SIZE, unit)
                self._note_written(queue_offset)
                return
        except OSError:
            pass
        if len(self._refused) >= MAX_REFUSED_UNITS:
            del self._refused[next(iter(self._refused))]
        self._refused[queue_offset] = unit

    def read(self, queue_offset: int, count: int) -> bytes:
        """Returns at most `count` units from an offset, or fewer at the end of a file or of the queue."""
        found = self._stored(queue_offset, count)
        if not self._refused:
            return found
        repaired = bytearray(found)
        for offset in range(queue_offset, queue_offset + len(found) // UNIT_SIZE):
            if offset in self._refused:
                at = (offset - queue_offset) * UNIT_SIZE
                repaired[at : at + UNIT_SIZE] = self._refused[offset]
        return bytes(repaired)

    def take_unsynced(self) -> Unsynced:
        """Returns the files and directories written since the last call, for the caller to sync."""
        if self._unsynced_from is None:
            return Unsynced([], [])
        paths = self.segments.paths_between(self._unsynced_from * UNIT_SIZE, self._written_offset * UNIT_SIZE)
        directory = self.segments.directory
        # The names of the folders `consumequeue`, TOPIC and QUEUE ID may all be new.
        directories = [directory, *directory.parents[:3]] if self._has_new_file else []
        self._unsynced_from = None
        self._has_new_file = False
        return Unsynced(paths, directories)

    def destroy(self) -> None:
        """Deletes all units and their files."""
        self._refused.clear()
        self.end_at(0)
        self.segments.destroy()

    def _stored(self, queue_offset: int, count: int) -> bytes:
        count = min(count, self.end - queue_offset)
        if count <= 0:
            return b""
        written = min(count, self._written_offset - queue_offset)
        if written <= 0:
            at = (queue_offset - self._written_offset) * UNIT_SIZE
            return bytes(self._tail[at : at + count * UNIT_SIZE])
        found = self.segments.read(queue_offset * UNIT_SIZE, written * UNIT_SIZE)
        if len(found) == written * UNIT_SIZE and written < count:
            return found + self._tail[: (count - written) * UNIT_SIZE]
        return found[: len(found) - len(found) % UNIT_SIZE]

    def _note_written(self, queue_offset: int) -> None:
        self._unsynced_from = queue_offset if self._unsynced_from is None else min(self._unsynced_from, queue_offset)
