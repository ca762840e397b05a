"""One index file, which maps the hash of topic#key to commit log offsets (RocketMQ's IndexFile and IndexHeader).

    header 40:  BEGINTIMESTAMP 8 | ENDTIMESTAMP 8 | BEGINPHYOFFSET 8 | ENDPHYOFFSET 8 | HASHSLOTCOUNT 4 | INDEXCOUNT 4
    slots:      4 bytes each: the number of the newest entry whose hash belongs to the slot, 0 for none
    entries:    KEYHASH 4 | PHYOFFSET 8 | SECONDS SINCE BEGINTIMESTAMP 4 | NUMBER OF THE NEXT OLDER ENTRY OF THE SLOT 4

Entry 0 is never used; INDEXCOUNT is the number of the next entry. The slots of the file being written are kept in memory.

The file on disk is usable at any time, because each part is written only after the previous part was synced: first entries,
then the slots that point to them, then the header with their count. After a crash, a slot may point to an entry that the
header does not count. `repair` makes it point to the newest older entry that the header counts.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from librt.strings import BytesWriter, write_i32_be, write_i64_be

from rocketmq_broker.platform.memory import zeroed_memory
from rocketmq_broker.store.files import OpenFiles, create_file_lazily
from rocketmq_broker.store.queues.dispatch import DispatchRequest

HEADER_SIZE: Final = 40
SLOT_SIZE: Final = 4
ENTRY: Final = struct.Struct(">iqii")

_HEADER: Final = struct.Struct(">qqqqii")
_SLOT: Final = struct.Struct(">i")
_PAGE: Final = 4096
_SLOTS_OF_PAGE: Final = _PAGE // SLOT_SIZE
_BLOCK: Final = 512
_PASSED_OVER: Final = 1000
_MAX_INT: Final = 0x7FFFFFFF


class IndexHeader(NamedTuple):
    """The header of an index file."""

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_offset: int = 0
    end_offset: int = 0
    """The commit log offset of the last record in the file."""
    slot_count: int = 0
    entry_count: int = 1

    def encode(self) -> bytes:
        """Encodes the header in 40 bytes."""
        return _HEADER.pack(*self)

    @classmethod
    def decode(cls, data: bytes) -> IndexHeader:
        """Decodes the result of `encode`. The zeros of a new file decode to an empty header."""
        header = cls(*_HEADER.unpack(data))
        return header if header.entry_count > 0 else header._replace(entry_count=1)


class IndexFile:
    """An index file, either complete or still being written."""

    def __init__(self, path: Path, slots: int, entries: int, open_files: OpenFiles) -> None:
        """Opens an existing file."""
        self.path = path
        self.slots = slots
        self.entries = entries
        self._entries_at = HEADER_SIZE + slots * SLOT_SIZE
        self._open = open_files
        self._files = open_files.files
        self.header = IndexHeader.decode(self._read(0, HEADER_SIZE).ljust(HEADER_SIZE, b"\0"))
        """The header that counts the entries in memory."""
        self.synced_header = self.header
        """The header that counts the entries on disk."""
        self.is_new = False
        """Whether the file's name may not be on disk yet."""
        self._slot_table: memoryview[int] | None = None
        self._dirty_pages: set[int] = set()
        self._waiting_entries = bytearray()
        self._slots_written: IndexHeader | None = None
        """The header that counts the entries whose slots have been written but not synced, or None."""
        self._header_written: IndexHeader | None = None

    @classmethod
    def create(cls, path: Path, slots: int, entries: int, open_files: OpenFiles, before: IndexHeader | None) -> IndexFile:
        """Creates a file that continues the previous, full one. The caller must sync the file and its directories."""
        create_file_lazily(open_files.files, path, HEADER_SIZE + slots * SLOT_SIZE + entries * ENTRY.size)
        index_file = cls(path, slots, entries, open_files)
        index_file.is_new = True
        index_file._slot_table = _empty_slots(slots)
        if before is not None:
            end, offset = before.end_timestamp, before.end_offset
            index_file.header = IndexHeader(end, end, offset, offset)
        return index_file

    def is_usable(self) -> bool:
        """Returns True if the file has the size that the settings require, and no more entries than they allow.

        Extends an empty file that a crash left too short.
        """
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
        """Returns whether all entries and slots and the header are on disk."""
        return (
            not self._waiting_entries and not self._dirty_pages and self._slots_written is None and self._header_written is None
        )

    def put(self, hashes: list[int], records: list[DispatchRequest], start: int) -> int:
        """Adds entries for the key hashes from index `start`, in memory, until the file is full.

        Returns the number of added entries (IndexFile.putKey). `records` contains the record of each hash. The method makes one
        pass with little work for each entry, because it is called for every stored message.
        """
        end = min(start + self.entries - self.header.entry_count, len(hashes))
        if start >= end:
            return 0
        begin, _, begin_offset, _, slot_count, number = self.header
        if number <= 1:
            begin, begin_offset = records[start].store_timestamp, records[start].commit_log_offset
        slots, dirty_pages, slot_number = self._loaded_slots(), self._dirty_pages, self.slots
        waiting = BytesWriter()
        stored_ms, seconds = begin, 0
        for at in range(start, end):
            key_hash, record = hashes[at], records[at]
            slot = key_hash % slot_number
            older = slots[slot]
            if not 0 < older < number:
                older = 0
                slot_count += 1
            if record.store_timestamp != stored_ms:
                stored_ms = record.store_timestamp
                seconds = min(max((stored_ms - begin) // 1000, 0), _MAX_INT) if begin > 0 else 0
            write_i32_be(waiting, key_hash)
            write_i64_be(waiting, record.commit_log_offset)
            write_i32_be(waiting, seconds)
            write_i32_be(waiting, older)
            slots[slot] = number
            dirty_pages.add(slot // _SLOTS_OF_PAGE)
            number += 1
        self._waiting_entries += waiting.getvalue()
        last = records[end - 1]
        self.header = IndexHeader(begin, last.store_timestamp, begin_offset, last.commit_log_offset, slot_count, number)
        return end - start

    def find(self, key_hash: int, begin_ms: int, end_ms: int) -> Iterator[int | None]:
        """Yields the commit log offsets of entries with this hash, from `begin_ms` to `end_ms`, newest first (selectPhyOffset).

        Yields None after each thousand entries that do not match, because a slot may have a million entries.
        """
        number = self._slot(key_hash % self.slots)
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
            # Entries contain times in whole seconds.
            if found_hash == key_hash and begin_ms - 1000 < stored <= end_ms:
                yield commit_log_offset
            elif (passed_over := passed_over + 1) % _PASSED_OVER == 0:
                yield None
            if older >= number or stored < begin_ms - 1000:
                return
            number = older

    def may_hold(self, begin_ms: int, end_ms: int) -> bool:
        """Returns whether the file may contain entries from `begin_ms` to `end_ms` (isTimeMatched)."""
        return self.header.begin_timestamp <= end_ms and begin_ms <= self.header.end_timestamp

    def write(self) -> bool:
        """Writes waiting entries to the file. Returns whether the file must be synced before `mark_synced`."""
        if self.is_settled:
            return False
        if self._waiting_entries:
            first = self.header.entry_count - len(self._waiting_entries) // ENTRY.size
            self._write(self._entries_at + first * ENTRY.size, self._waiting_entries)
            self._waiting_entries.clear()
        return True

    def mark_synced(self) -> None:
        """Records that all writes are on disk, and writes the next part.

        The entries are followed by the slots that point to them, and the slots by the header.

        No entry may be added between `write` and this call."""
        if self._header_written is not None:
            self.synced_header = self._header_written
            self._header_written = None
        if self._slots_written is not None:
            self._write(0, self._slots_written.encode())
            self._header_written = self._slots_written
            self._slots_written = None
        if self._dirty_pages:
            slots = self._loaded_slots()
            for first, end in _runs(sorted(self._dirty_pages)):
                part = slots[first * _SLOTS_OF_PAGE : end * _SLOTS_OF_PAGE]
                self._write(HEADER_SIZE + first * _PAGE, _bytes_of(part))
            self._dirty_pages.clear()
            self._slots_written = self.header

    def repair(self) -> int:
        """Corrects slots that point beyond the entries that the header counts, so that they point to older entries.

        Returns the number of corrected slots.
        """
        slots = self._loaded_slots()
        count = self.header.entry_count
        corrected = 0
        for first in range(0, len(slots), _SLOTS_OF_PAGE):
            numbers = slots[first : first + _SLOTS_OF_PAGE]
            if max(numbers) < count and min(numbers) >= 0:
                continue
            for slot, number in enumerate(numbers, first):
                if number >= count or number < 0:
                    slots[slot] = self._older_than(number, count)
                    self._dirty_pages.add(first // _SLOTS_OF_PAGE)
                    corrected += 1
        return corrected

    def release_memory(self) -> None:
        """Frees the memory of the slots. Call it only when all changes are on disk."""
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

    def _loaded_slots(self) -> memoryview[int]:
        if self._slot_table is None:
            size = self.slots * SLOT_SIZE
            self._slot_table = _slots_of(self._read(HEADER_SIZE, size).ljust(size, b"\0"))
        return self._slot_table

    def _slot(self, slot: int) -> int:
        if self._slot_table is not None:
            return self._slot_table[slot]
        number: int = _SLOT.unpack(self._read(HEADER_SIZE + slot * SLOT_SIZE, SLOT_SIZE))[0]
        return number

    def _entries_before(self, number: int) -> tuple[int, bytes]:
        """Reads a block of entries that ends with entry `number`. Returns the number of the block's first entry, and the block.

        One read covers several entries, because the entries of a slot may be close together.
        """
        first_waiting = self.header.entry_count - len(self._waiting_entries) // ENTRY.size
        if number >= first_waiting:
            at = (number - first_waiting) * ENTRY.size
            return number, bytes(self._waiting_entries[at : at + ENTRY.size])
        first = number - number % _BLOCK
        length = (number - first + 1) * ENTRY.size
        return first, self._read(self._entries_at + first * ENTRY.size, length).ljust(length, b"\0")

    def _read(self, position: int, length: int) -> bytes:
        return self._files.read(self._open.get(self.path), length, position)

    def _write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        self._files.write(self._open.get(self.path), data, position)


def _empty_slots(slots: int) -> memoryview[int]:
    """Returns empty slots. The kernel allocates each page of their memory only when the page is first written."""
    return memoryview(zeroed_memory(slots * SLOT_SIZE)).cast("i")


def _slots_of(data: bytes) -> memoryview[int]:
    """Decodes slots from the bytes in the file."""
    return memoryview(_swapped(data))


def _bytes_of(slots: memoryview[int]) -> bytes:
    """Encodes slots as the bytes in the file."""
    return _swapped(slots.tobytes()).tobytes()


def _swapped(data: bytes) -> array[int]:
    """Converts 32-bit numbers between big-endian and the machine's byte order."""
    numbers = array("i", data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _runs(pages: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields the start and the end of each run of consecutive page numbers. The end is exclusive."""
    first = end = pages[0]
    for page in pages:
        if page != end:
            yield first, end
            first = page
        end = page + 1
    yield first, end
