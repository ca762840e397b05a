"""A file in memory that simulates durability. It stores the written pages, and the content that a sync has made durable."""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocketmq_broker.store.files import FileSystem
from rocketmq_broker.world import Chance

_PAGE: Final = 4096
"""The size of a page in bytes. Linux writes files in pages, and loses whole pages when a disk refuses a write."""
SECTOR: Final = 512
"""The size of a sector in bytes.

A disk writes sectors atomically, so that after a power failure each sector has its old or its new content.
"""
KEPT: Final = (0.0, 0.1, 0.5, 0.9, 1.0)
"""The shares of unsynced data that may reach the disk in a simulated crash."""


class _Refused(enum.Enum):
    """The possible states of a page after a failed sync."""

    STAYS_DIRTY = "the next sync writes it"
    COUNTS_AS_CLEAN = "it is read as it was written, but no sync writes it before it is written again"
    IS_DROPPED = "it is read as the last sync left it"


@dataclass(frozen=True, slots=True)
class SyncedPages:
    """The file content that a sync makes durable, as it was when the sync began."""

    number: int
    pages: dict[int, bytearray | None]
    sizes: tuple[int, int, int]


class MemoryFile:
    """A file in memory. Written pages cover the content of a file in the base file system. All other bytes read as zeros."""

    __slots__ = (
        "_begun",
        "_ended",
        "_refused",
        "_sizes_when_synced",
        "_unsynced",
        "base",
        "below",
        "end",
        "length",
        "pages",
        "path",
        "shown",
        "users",
    )

    def __init__(self, base: FileSystem | None = None, path: Path = Path(), length: int = 0) -> None:
        """Creates a file with the content of the base's file at `path`, or an empty file if `base` is None."""
        self.base = base
        self.path = path
        """The file's path in the base."""
        self.below = -1
        """The descriptor of the base's file while it is open, or -1 before."""
        self.users = 0
        self.length = length
        self.end = length
        """The position after the last written byte."""
        self.shown = length
        """The number of bytes of the base's file that are still visible."""
        self.pages: dict[int, bytearray] = {}
        self._unsynced: dict[int, bytearray | None] = {}
        """The durable content of each page that has unsynced changes."""
        self._refused: set[int] = set()
        """The unsynced pages that later syncs do not write, because the disk refused to write them once."""
        self._sizes_when_synced = (length, length, length)
        self._begun = self._ended = 0

    # use

    def open(self) -> None:
        """Adds a user of the file. Opens the base's file for the first user. Raises OSError."""
        if self.base is not None and not self.users:
            self.below = self.base.open(self.path)
        self.users += 1

    def close(self) -> None:
        """Removes a user of the file. Closes the base's file after the last user."""
        self.users -= 1
        if self.base is not None and not self.users:
            self.base.close(self.below)

    def read(self, length: int, position: int) -> bytes:
        """Returns the bytes at a position, or fewer at the end of the file."""
        end = min(position + length, self.length)
        if not self.pages:
            return self._shown(position, end, self.shown)
        parts = []
        while position < end:
            number, offset = divmod(position, _PAGE)
            part_end = min(end, position - offset + _PAGE)
            page = self.pages.get(number)
            parts.append(
                self._shown(position, part_end, self.shown) if page is None else page[offset : offset + part_end - position]
            )
            position = part_end
        return b"".join(parts)

    def write(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes all bytes at a position."""
        view = memoryview(data)
        self.length, self.end = max(self.length, position + len(view)), max(self.end, position + len(view))
        while view:
            number, offset = divmod(position, _PAGE)
            part = view[: _PAGE - offset]
            self._to_write(number)[offset : offset + len(part)] = part
            position += len(part)
            view = view[len(part) :]

    def truncate(self, length: int) -> None:
        """Sets the length in bytes. Added bytes read as zeros."""
        number, offset = divmod(length, _PAGE)
        for behind in [each for each in self.pages if each * _PAGE >= length]:
            self._unsynced.setdefault(behind, self.pages.pop(behind))
            self._refused.discard(behind)
        if offset and number in self.pages:
            self._to_write(number)[offset:] = bytes(_PAGE - offset)
        self.length, self.end, self.shown = length, min(self.end, length), min(self.shown, length)

    def next_data(self, position: int) -> int | None:
        """Returns the first position at or after `position` in a written page or in the base's data, or None if there is none."""
        first = position // _PAGE
        number = min((number for number in self.pages if number >= first), default=None)
        found = [] if number is None else [max(position, number * _PAGE)]
        if self.base is not None and (below := self.base.next_data(self.below, position)) is not None and below < self.shown:
            found.append(below)
        return min(found, default=None)

    def copy(self) -> "MemoryFile":
        """Returns a copy of the file. The copy is not open."""
        file = MemoryFile(self.base, self.path)
        file.pages = {number: page[:] for number, page in self.pages.items()}
        file._unsynced = {number: None if page is None else page[:] for number, page in self._unsynced.items()}
        file._refused = set(self._refused)
        file.length, file.end, file.shown = self.length, self.end, self.shown
        file._sizes_when_synced = self._sizes_when_synced
        return file

    # durability

    def sync(self) -> None:
        """Makes the whole content durable, except pages that the disk refused and the kernel treats as written."""
        self._begun += 1
        self._ended = self._begun
        self._unsynced = {number: page for number, page in self._unsynced.items() if number in self._refused}
        self._sizes_when_synced = self.length, self.end, self.shown

    def begin_sync(self) -> SyncedPages:
        """Begins a sync. Returns the content that the sync will make durable, without later writes."""
        self._begun += 1
        pages = {}
        for number in self._unsynced:
            if number not in self._refused:
                page = self.pages.get(number)
                pages[number] = None if page is None else page[:]
        return SyncedPages(self._begun, pages, (self.length, self.end, self.shown))

    def end_sync(self, synced: SyncedPages) -> None:
        """Makes the content from `begin_sync` durable, unless a later sync has already ended."""
        if synced.number < self._ended:
            return
        self._ended = synced.number
        for number, content in synced.pages.items():
            if number in self._unsynced and number not in self._refused:
                if content == self.pages.get(number):
                    del self._unsynced[number]
                else:
                    self._unsynced[number] = content
        self._sizes_when_synced = synced.sizes

    def refuse_sync(self, chance: Chance) -> None:
        """Simulates a failed sync. `chance` chooses the outcome for each page among those that Linux allows."""
        for number, before in list(self._unsynced.items()):
            if number not in self.pages:
                continue
            outcome = chance.choice((*_Refused,))
            if outcome is _Refused.COUNTS_AS_CLEAN:
                self._refused.add(number)
            elif outcome is _Refused.IS_DROPPED:
                self._put(number, before)
                del self._unsynced[number]
                self._refused.discard(number)

    def write_back(self, chance: Chance, sector: int = SECTOR) -> None:
        """Makes some random unsynced sectors and the length durable, as the kernel may do without a sync."""
        often = chance.choice(KEPT)
        lengths = self._sizes_when_synced, (self.length, self.end, self.shown)
        length, _, shown = lengths[chance.random() < often]
        for number, before in list(self._unsynced.items()):
            if number not in self._refused:
                old = self._page_shown(number, lengths[0][2]) if before is None else before
                new = self.pages.get(number) or self._page_shown(number, self.shown)
                self._unsynced[number] = left = _mixed(old, new, chance, often, sector)
                if left == new and number in self.pages:
                    del self._unsynced[number]
        self._sizes_when_synced = length, min(length, max(lengths[0][1], lengths[1][1])), shown

    def lose_power(self, chance: Chance | None, sector: int) -> None:
        """Reverts to the durable content: all synced data and, with `chance`, some of the other sectors."""
        if self._unsynced or self._sizes_when_synced != (self.length, self.end, self.shown):
            if chance is not None:
                self.write_back(chance, sector)
            for number, page in self._unsynced.items():
                self._put(number, page)
            self.length, self.end, self.shown = self._sizes_when_synced
            self.truncate(self.length)
        self._unsynced = {}
        self._refused = set()

    def _put(self, number: int, page: bytearray | None) -> None:
        if page is None:
            self.pages.pop(number, None)
        else:
            self.pages[number] = page

    def _shown(self, position: int, end: int, visible: int) -> bytes:
        """Returns bytes of the base's file. The bytes after its first `visible` bytes read as zeros."""
        length = max(0, end - position)
        shown = min(length, visible - position)
        found = self.base.read(self.below, shown, position) if self.base is not None and shown > 0 else b""
        return found.ljust(length, b"\0")

    def _page_shown(self, number: int, visible: int) -> bytearray:
        return bytearray(self._shown(number * _PAGE, (number + 1) * _PAGE, visible))

    def _to_write(self, number: int) -> bytearray:
        page = self.pages.get(number)
        if number not in self._unsynced:
            self._unsynced[number] = None if page is None else page[:]
        self._refused.discard(number)
        if page is None:
            page = self.pages[number] = self._page_shown(number, self.shown)
        return page


def _mixed(old: bytearray, new: bytearray, chance: Chance, often: float, sector: int) -> bytearray:
    """Returns a page in which each sector has its old or its new content. `often` is the probability of the new content."""
    mixed = old[:]
    if old != new:
        for at in range(0, _PAGE, sector):
            written = new[at : at + sector]
            if written != old[at : at + sector] and chance.random() < often:
                mixed[at : at + sector] = written
    return mixed
