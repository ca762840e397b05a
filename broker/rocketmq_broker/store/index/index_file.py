"""One index file: from the hash of topic#key to commit log offsets (RocketMQ's IndexFile and IndexHeader).

    header 40:  BEGINTIMESTAMP 8 | ENDTIMESTAMP 8 | BEGINPHYOFFSET 8 | ENDPHYOFFSET 8 | HASHSLOTCOUNT 4 | INDEXCOUNT 4
    slots:      4 bytes each: the number of the newest entry whose hash falls into it, 0 for none
    entries:    KEYHASH 4 | PHYOFFSET 8 | SECONDS SINCE BEGINTIMESTAMP 4 | NUMBER OF THE NEXT OLDER ENTRY OF THE SLOT 4

Entry 0 is never used; INDEXCOUNT is the number of the next one. The slots of the file being written are kept in memory.

The file on disk is usable at every moment, because each part waits until the one before was synced: entries, then the
slots that point to them, then the header that counts them. A slot that points past the header's count is led back along
its entries when the file is opened after a crash.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rocketmq_broker.store.files import OpenFiles, create_file_lazily

HEADER_SIZE: Final = 40
SLOT_SIZE: Final = 4
ENTRY: Final = struct.Struct(">iqii")

_HEADER: Final = struct.Struct(">qqqqii")
_SLOT: Final = struct.Struct(">i")
_PAGE: Final = 4096
_BLOCK: Final = 512
_PASSED_OVER: Final = 1000
_MAX_INT: Final = 0x7FFFFFFF


class IndexHeader(NamedTuple):
    """The header of an index file."""

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_offset: int = 0
    end_offset: int = 0
    """The commit log offset of the last record in the index."""
    slot_count: int = 0
    entry_count: int = 1

    def encode(self) -> bytes:
        """Encodes the header in 40 bytes."""
        return _HEADER.pack(*self)

    @classmethod
    def decode(cls, data: bytes) -> IndexHeader:
        """Decodes the result of `encode`; a new file's zeros are an empty header."""
        header = cls(*_HEADER.unpack(data))
        return header if header.entry_count > 0 else header._replace(entry_count=1)


class IndexFile:
    """One file, complete or growing."""

    def __init__(self, path: Path, slots: int, entries: int, open_files: OpenFiles) -> None:
        """Opens a file, which must exist."""
        self.path = path
        self.slots = slots
        self.entries = entries
        self._entries_at = HEADER_SIZE + slots * SLOT_SIZE
        self._open = open_files
        self._files = open_files.files
        self.header = IndexHeader.decode(self._read(0, HEADER_SIZE).ljust(HEADER_SIZE, b"\0"))
        """The state in memory."""
        self.synced_header = self.header
        """The state on disk."""
        self.is_new = False
        """Whether its name may not be on disk yet."""
        self._slot_table: bytearray | None = None
        self._dirty_pages: set[int] = set()
        self._waiting_entries = bytearray()
        self._slots_written: IndexHeader | None = None
        """The state up to which slots were written, without a sync."""
        self._header_written: IndexHeader | None = None

    @classmethod
    def create(cls, path: Path, slots: int, entries: int, open_files: OpenFiles, before: IndexHeader | None) -> IndexFile:
        """Creates a file that begins at the end of the full one before it. The caller syncs it and its directories."""
        create_file_lazily(open_files.files, path, HEADER_SIZE + slots * SLOT_SIZE + entries * ENTRY.size)
        index_file = cls(path, slots, entries, open_files)
        index_file.is_new = True
        index_file._slot_table = bytearray(slots * SLOT_SIZE)
        if before is not None:
            end, offset = before.end_timestamp, before.end_offset
            index_file.header = IndexHeader(end, end, offset, offset)
        return index_file

    def is_usable(self) -> bool:
        """Returns whether size and count fit the settings. Restores the size of a file whose creation a crash cut short."""
        expected = HEADER_SIZE + self.slots * SLOT_SIZE + self.entries * ENTRY.size
        size = self._files.size(self.path) or 0
        if size < expected and self.is_empty:
            self._files.truncate(self._open.get(self.path), expected)
            size = expected
        return size == expected and self.header.entry_count <= self.entries

    @property
    def is_empty(self) -> bool:
        """Returns whether the file has no entries."""
        return self.header.entry_count <= 1

    @property
    def is_full(self) -> bool:
        """Returns whether the file has no room for another entry."""
        return self.header.entry_count >= self.entries

    @property
    def is_settled(self) -> bool:
        """Returns whether everything is on disk."""
        return (
            not self._waiting_entries and not self._dirty_pages and self._slots_written is None and self._header_written is None
        )

    def put(self, entries: Sequence[tuple[int, int, int]]) -> int:
        """Adds entries of key hash, commit log offset and store timestamp, in memory, while there is room. Returns their number.

        See IndexFile.putKey. Hot: one pass with minimal work for each.
        """
        taken = entries[: self.entries - self.header.entry_count]
        if not taken:
            return 0
        begin, _, begin_offset, _, slot_count, number = self.header
        if number <= 1:
            _, begin_offset, begin = taken[0]
        slots, waiting, dirty_pages, slot_number = self._loaded_slots(), self._waiting_entries, self._dirty_pages, self.slots
        stored_ms, seconds = begin, 0
        for key_hash, commit_log_offset, store_timestamp in taken:
            at = key_hash % slot_number * SLOT_SIZE
            (older,) = _SLOT.unpack_from(slots, at)
            if not 0 < older < number:
                older = 0
                slot_count += 1
            if store_timestamp != stored_ms:
                stored_ms = store_timestamp
                seconds = min(max((store_timestamp - begin) // 1000, 0), _MAX_INT) if begin > 0 else 0
            waiting += ENTRY.pack(key_hash, commit_log_offset, seconds, older)
            _SLOT.pack_into(slots, at, number)
            dirty_pages.add(at // _PAGE)
            number += 1
        self.header = IndexHeader(begin, taken[-1][2], begin_offset, taken[-1][1], slot_count, number)
        return len(taken)

    def find(self, key_hash: int, begin_ms: int, end_ms: int) -> Iterator[int | None]:
        """Yields the commit log offsets of entries with that hash stored between the times, newest first (selectPhyOffset).

        Yields None after each thousand entries of the slot that do not match: a slot may have a million of them.
        """
        (number,) = _SLOT.unpack(self._slot(key_hash % self.slots))
        limit = self.header.entry_count
        begin_timestamp = self.header.begin_timestamp
        first, block, passed_over = 0, b"", 0
        while 0 < number < limit:
            at = (number - first) * ENTRY.size
            if not 0 <= at < len(block):
                first, block = self._entries_before(number)
                at = (number - first) * ENTRY.size
            found_hash, commit_log_offset, seconds, older = ENTRY.unpack_from(block, at)
            stored = begin_timestamp + seconds * 1000
            # Entries have whole seconds only.
            if found_hash == key_hash and begin_ms - 1000 < stored <= end_ms:
                yield commit_log_offset
            elif (passed_over := passed_over + 1) % _PASSED_OVER == 0:
                yield None
            if older >= number or stored < begin_ms - 1000:
                return
            number = older

    def may_hold(self, begin_ms: int, end_ms: int) -> bool:
        """Returns whether the file may have entries between the times (isTimeMatched)."""
        return self.header.begin_timestamp <= end_ms and begin_ms <= self.header.end_timestamp

    def write(self) -> bool:
        """Writes waiting entries to the file. Returns whether a sync must come before `mark_synced`."""
        if self.is_settled:
            return False
        if self._waiting_entries:
            first = self.header.entry_count - len(self._waiting_entries) // ENTRY.size
            self._write(self._entries_at + first * ENTRY.size, self._waiting_entries)
            self._waiting_entries.clear()
        return True

    def mark_synced(self) -> None:
        """Notes that all writes are on disk, and writes the next part. No entry may be put between `write` and this."""
        if self._header_written is not None:
            self.synced_header = self._header_written
            self._header_written = None
        if self._slots_written is not None:
            self._write(0, self._slots_written.encode())
            self._header_written = self._slots_written
            self._slots_written = None
        if self._dirty_pages:
            slots = memoryview(self._loaded_slots())
            for first, end in _runs(sorted(self._dirty_pages)):
                self._write(HEADER_SIZE + first * _PAGE, slots[first * _PAGE : end * _PAGE])
            self._dirty_pages.clear()
            self._slots_written = self.header

    def mend(self) -> int:
        """Leads slots that point past the header's count back to entries it counts. Returns their number."""
        slots = self._loaded_slots()
        count = self.header.entry_count
        led_back = 0
        for at in range(0, len(slots), _PAGE):
            numbers = _numbers(slots[at : at + _PAGE])
            if max(numbers) < count and min(numbers) >= 0:
                continue
            for offset, number in enumerate(numbers):
                if number >= count or number < 0:
                    _SLOT.pack_into(slots, at + offset * SLOT_SIZE, self._older_than(number, count))
                    self._dirty_pages.add(at // _PAGE)
                    led_back += 1
        return led_back

    def release_memory(self) -> None:
        """Frees the slots in memory; the file must be settled."""
        self._slot_table = None

    def delete(self) -> None:
        """Deletes the file."""
        self._open.forget(self.path)
        self._files.unlink(self.path)

    def _older_than(self, number: int, count: int) -> int:
        while number >= count:
            entry = self._read(self._entries_at + number * ENTRY.size, ENTRY.size)
            older = ENTRY.unpack(entry)[3] if len(entry) == ENTRY.size else 0
            number = older if older < number else 0
        return max(number, 0)

    def _loaded_slots(self) -> bytearray:
        if self._slot_table is None:
            size = self.slots * SLOT_SIZE
            self._slot_table = bytearray(self._read(HEADER_SIZE, size).ljust(size, b"\0"))
        return self._slot_table

    def _slot(self, slot: int) -> bytes:
        at = slot * SLOT_SIZE
        if self._slot_table is not None:
            return bytes(self._slot_table[at : at + SLOT_SIZE])
        return self._read(HEADER_SIZE + at, SLOT_SIZE)

    def _entries_before(self, number: int) -> tuple[int, bytes]:
        """Returns some entries that end with that one, and the number of the first. Entries of a slot may lie close together."""
        first_waiting = self.header.entry_count - len(self._waiting_entries) // ENTRY.size
        if number >= first_waiting:
            at = (number - first_waiting) * ENTRY.size
            return number, bytes(self._waiting_entries[at : at + ENTRY.size])
        first = number - number % _BLOCK
        block = self._read(self._entries_at + first * ENTRY.size, (number - first + 1) * ENTRY.size)
        if len(block) != (number - first + 1) * ENTRY.size:
            block = block.ljust((number - first + 1) * ENTRY.size, b"\0")
        return first, block

    def _read(self, position: int, length: int) -> bytes:
        return self._files.read(self._open.get(self.path), length, position)

    def _write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        self._files.write(self._open.get(self.path), data, position)


def _numbers(slots: bytearray) -> tuple[int, ...]:
    """Returns the slots' numbers, many times faster than one by one."""
    return struct.unpack(f">{len(slots) // SLOT_SIZE}i", slots)


def _runs(pages: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields runs of successive pages, as first and end."""
    first = end = pages[0]
    for page in pages:
        if page != end:
            yield first, end
            first = page
        end = page + 1
    yield first, end
