"""Files in memory: alone, or over another file system, which they leave unchanged.

Alone they are a disk that records syncs and can lose its power. Over the real disk a store can be opened as by its broker's
next start, only to see the findings and actions of that start.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

from rocketmq_broker.store.files import FileSystem

_PAGE: Final = 64 * 1024

Tear: TypeAlias = Callable[[bytes, bytes], bytes]
"""From what was written of a file, and what of it was synced, to what a power failure leaves."""


class _File:
    """Written pages over a file of the base; other bytes up to `length` read as zero."""

    __slots__ = ("base", "below", "end", "length", "pages", "path", "shown", "sizes_when_synced", "unsynced", "users")

    def __init__(self, base: FileSystem | None = None, path: Path = Path(), length: int = 0) -> None:
        self.base = base
        self.path = path
        """The file's path in the base."""
        self.below = -1
        """The base's open file, while it has users."""
        self.users = 0
        self.length = length
        self.end = length
        """The position after the last written byte."""
        self.shown = length
        """The number of bytes of the base's file that still show."""
        self.pages: dict[int, bytearray] = {}
        self.unsynced: dict[int, bytearray | None] = {}
        """The pages changed since the last sync, with their content at that sync."""
        self.sizes_when_synced = (length, length, length)

    def open(self) -> None:
        """Opens the base's file for the first user. Raises OSError."""
        if self.base is not None and not self.users:
            self.below = self.base.open(self.path)
        self.users += 1

    def close(self) -> None:
        self.users -= 1
        if self.base is not None and not self.users:
            self.base.close(self.below)

    def read(self, length: int, position: int) -> bytes:
        end = min(position + length, self.length)
        if not self.pages:
            return self._shown(position, end)
        parts = []
        while position < end:
            number, offset = divmod(position, _PAGE)
            part_end = min(end, position - offset + _PAGE)
            page = self.pages.get(number)
            parts.append(self._shown(position, part_end) if page is None else page[offset : offset + part_end - position])
            position = part_end
        return b"".join(parts)

    def write(self, data: bytes | bytearray | memoryview, position: int) -> None:
        view = memoryview(data)
        self.length, self.end = max(self.length, position + len(view)), max(self.end, position + len(view))
        while view:
            number, offset = divmod(position, _PAGE)
            part = view[: _PAGE - offset]
            self._to_write(number)[offset : offset + len(part)] = part
            position += len(part)
            view = view[len(part) :]

    def truncate(self, length: int) -> None:
        number, offset = divmod(length, _PAGE)
        for behind in [each for each in self.pages if each * _PAGE >= length]:
            self.unsynced.setdefault(behind, self.pages.pop(behind))
        if offset and number in self.pages:
            self._to_write(number)[offset:] = bytes(_PAGE - offset)
        self.length, self.end, self.shown = length, min(self.end, length), min(self.shown, length)

    def next_data(self, position: int) -> int | None:
        found = [max(position, number * _PAGE) for number in self.pages if (number + 1) * _PAGE > position]
        if self.base is not None and (below := self.base.next_data(self.below, position)) is not None and below < self.shown:
            found.append(below)
        return min(found, default=None)

    def sync(self) -> None:
        self.unsynced.clear()
        self.sizes_when_synced = self.length, self.end, self.shown

    def copy(self, *, is_synced_only: bool = False) -> _File:
        file = _File(self.base, self.path)
        pages = self.pages | self.unsynced if is_synced_only else self.pages
        file.pages = {number: page[:] for number, page in pages.items() if page is not None}
        file.length, file.end, file.shown = self.sizes_when_synced if is_synced_only else (self.length, self.end, self.shown)
        file.sync()
        return file

    def torn(self, tear: Tear) -> _File:
        synced, file = self.copy(is_synced_only=True), _File()
        file.write(tear(self.read(self.length, 0), synced.read(synced.length, 0)), 0)
        file.sync()
        return file

    def _shown(self, position: int, end: int) -> bytes:
        length = max(0, end - position)
        shown = min(length, self.shown - position)
        found = self.base.read(self.below, shown, position) if self.base is not None and shown > 0 else b""
        return found.ljust(length, b"\0")

    def _to_write(self, number: int) -> bytearray:
        page = self.pages.get(number)
        if number not in self.unsynced:
            self.unsynced[number] = None if page is None else page[:]
        if page is None:
            page = self.pages[number] = bytearray(self._shown(number * _PAGE, (number + 1) * _PAGE))
        return page


class MemoryFiles:
    """Files by their paths. Contents are durable after `sync`, names after `sync_directory`, and directories at once."""

    def __init__(self, base: FileSystem | None = None) -> None:
        """Shows the files of `base`, leaves them unchanged, and takes none of the base's locks."""
        self.reads = 0
        self.writes = 0
        self._base = base
        self._files: dict[Path, _File] = {}
        self._durable: dict[Path, _File] = {}
        self._hidden: set[Path] = set()
        """Files of the base that have been deleted or renamed."""
        self._folders: dict[Path, set[str]] = {}
        """The names in each folder; in the base's folders, the added ones."""
        self._opened: dict[int, _File | Path] = {}
        self._locked: dict[int, _File | Path] = {}
        self._next = 1

    def killed(self) -> MemoryFiles:
        """Returns the files after a kill of the process: everything written."""
        return self._left({path: file.copy() for path, file in self._files.items()})

    def powered_off(self, tear: Tear | None = None, *, are_names_lost: bool = True) -> MemoryFiles:
        """What the next process finds after a power failure: all that is synced, and what `tear` leaves of the rest."""
        names = self._durable if are_names_lost else self._files
        if tear is None:
            return self._left({path: file.copy(is_synced_only=True) for path, file in names.items()})
        return self._left({path: file.torn(tear) for path, file in names.items()})

    def content(self, path: Path) -> bytes:
        """Returns a file's content without the unwritten zeros at its end."""
        file = self._files[path]
        return file.read(file.end, 0)

    @property
    def paths(self) -> list[Path]:
        """Returns all files that were opened or created here."""
        return sorted(self._files)

    # FileSystem

    def open(self, path: Path, *, create: bool = False) -> int:
        """Opens a file of memory or of the base; with `create`, makes a missing one in memory."""
        file = self._found(path)
        if file is None:
            if not create:
                _raise(errno.ENOENT, path)
            file = _File()
            self._name(path)
        file.open()
        self._files[path] = file
        return self._handle(file)

    def close(self, file: int) -> None:
        """Closes the file and ends its lock."""
        self._locked.pop(file, None)
        opened = self._opened.pop(file)
        if isinstance(opened, _File):
            opened.close()

    def read(self, file: int, length: int, position: int) -> bytes:
        """Returns bytes from a position; fewer at the end of the file."""
        self.reads += 1
        return self._file(file).read(length, position)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes into memory; durable after `sync`."""
        self.writes += 1
        self._file(file).write(data, position)

    def truncate(self, file: int, length: int) -> None:
        """Sets the file's length; a new part reads as zero."""
        self._file(file).truncate(length)

    def next_data(self, file: int, position: int) -> int | None:
        """Returns the first position at or after `position` in a written page or in the base's data, or None."""
        return self._file(file).next_data(position)

    def sync(self, file: int) -> None:
        """Makes the file's content durable here; the base gets nothing."""
        self._file(file).sync()

    def sync_directory(self, path: Path) -> None:
        """Makes the names in the directory durable."""
        self._durable = {found: file for found, file in self._durable.items() if found.parent != path}
        self._durable |= {found: file for found, file in self._files.items() if found.parent == path}

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Creates a directory, unless it exists here."""
        if path not in self._folders:
            self._folders[path] = set()
            self._name(path)

    def remove_directory(self, path: Path) -> None:
        """Removes a directory."""
        self._folders.pop(path, None)
        self._forget(path)

    def rename(self, source: Path, target: Path) -> None:
        """Replaces the target by the source; durable after `sync_directory`."""
        file = self._found(source)
        if file is None:
            _raise(errno.ENOENT, source)
        self._forget(source)
        self._files[target] = file
        self._name(target)

    def unlink(self, path: Path) -> None:
        """Removes a file, or hides the base's."""
        if self.size(path) is None:
            _raise(errno.ENOENT, path)
        self._forget(path)

    def list(self, path: Path) -> list[str]:
        """Returns the sorted names here and in the base."""
        below = [] if self._base is None else self._base.list(path)
        return sorted(self._folders.get(path, set()).union(name for name in below if path / name not in self._hidden))

    def size(self, path: Path) -> int | None:
        """Returns the size in bytes; None for a missing file."""
        file = self._files.get(path)
        if file is not None:
            return file.length
        return None if self._base is None or path in self._hidden else self._base.size(path)

    def is_directory(self, path: Path) -> bool:
        """Returns whether the path is a directory here or in the base."""
        return path in self._folders or (self._base is not None and self._base.is_directory(path))

    def open_directory(self, path: Path) -> int:
        """Opens a directory for locking."""
        return self._handle(path)

    def lock(self, file: int) -> bool:
        """Takes the lock unless another handle of this object has it. Returns whether it did."""
        wanted = self._opened[file]
        if any(held == wanted for other, held in self._locked.items() if other != file):
            return False
        self._locked[file] = wanted
        return True

    def is_still(self, file: int, path: Path) -> bool:
        """Returns whether the path still leads to the open file or directory."""
        return self._opened[file] in (path, self._files.get(path))

    def used_ratio(self, path: Path) -> float:
        """Returns the base's used ratio; without a base 0, because memory is never full."""
        return 0.0 if self._base is None else self._base.used_ratio(path)

    def _file(self, handle: int) -> _File:
        opened = self._opened[handle]
        assert isinstance(opened, _File)
        return opened

    def _handle(self, opened: _File | Path) -> int:
        handle, self._next = self._next, self._next + 1
        self._opened[handle] = opened
        return handle

    def _found(self, path: Path) -> _File | None:
        file = self._files.get(path)
        if file is None and (length := self.size(path)) is not None:
            return _File(self._base, path, length)
        return file

    def _name(self, path: Path) -> None:
        """Adds the path to its folder, and each folder to its parent."""
        for child, folder in zip((path, *path.parents), path.parents, strict=False):
            self._folders.setdefault(folder, set()).add(child.name)

    def _forget(self, path: Path) -> None:
        self._files.pop(path, None)
        self._folders.get(path.parent, set()).discard(path.name)
        self._hidden.add(path)

    def _left(self, files: dict[Path, _File]) -> MemoryFiles:
        left = MemoryFiles(self._base)
        left._files, left._durable, left._hidden = files, dict(files), set(self._hidden)
        for path in (*self._folders, *files):
            left._name(path)
        left._folders |= {path: set() for path in self._folders if path not in left._folders}
        return left


def _raise(number: int, path: Path) -> NoReturn:
    raise OSError(number, os.strerror(number), str(path))
