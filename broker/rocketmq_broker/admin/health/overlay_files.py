"""A file system that may be written without changing a byte on the disk: what is written stays in memory.

So a store can be opened as its broker's next start would open it, only to see what that start would find and do.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final, NoReturn

from rocketmq_broker.store.files import OsFileSystem, open_regular

_PAGE: Final = 4096


class _Changed:
    """What was written of one file, page by page, over what the disk has."""

    def __init__(self, length: int, on_disk: int) -> None:
        """`on_disk` is how many bytes of the disk's file still show."""
        self.length = length
        self.on_disk = on_disk
        self.pages: dict[int, bytearray] = {}


class OverlayFiles:
    """See FileSystem. Locks are not taken: whoever looks keeps nobody out."""

    def __init__(self) -> None:
        """Shows what the disk has."""
        self._disk = OsFileSystem()
        self._changed: dict[Path, _Changed] = {}
        self._hidden: set[Path] = set()
        self._opened: dict[int, tuple[Path, int | None]] = {}
        self._next = 1

    def hide(self, path: Path) -> None:
        """Shows the file no more."""
        self._hidden.add(path)
        self._changed.pop(path, None)

    def open(self, path: Path, *, create: bool = False) -> int:
        """See FileSystem."""
        on_disk = None
        if self._is_on_disk(path):
            on_disk = open_regular(path, os.O_RDONLY)
        elif path not in self._changed:
            if not create:
                _raise(errno.ENOENT, path)
            self._changed[path] = _Changed(0, 0)
        return self._handle(path, on_disk)

    def close(self, file: int) -> None:
        """See FileSystem."""
        _, on_disk = self._opened.pop(file)
        if on_disk is not None:
            os.close(on_disk)

    def read(self, file: int, length: int, position: int) -> bytes:
        """See FileSystem."""
        path, on_disk = self._opened[file]
        changed = self._changed.get(path)
        if changed is None:
            return os.pread(on_disk, length, position) if on_disk is not None else b""
        length = max(0, min(length, changed.length - position))
        data = bytearray(length)
        if on_disk is not None and position < changed.on_disk:
            shown = os.pread(on_disk, min(length, changed.on_disk - position), position)
            data[: len(shown)] = shown
        for number in range(position // _PAGE, (position + length + _PAGE - 1) // _PAGE):
            if (page := changed.pages.get(number)) is not None:
                begin = max(position, number * _PAGE)
                end = min(position + length, (number + 1) * _PAGE)
                data[begin - position : end - position] = page[begin - number * _PAGE : end - number * _PAGE]
        return bytes(data)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """See FileSystem."""
        changed = self._change(file)
        view = memoryview(data)
        changed.length = max(changed.length, position + len(view))
        while view:
            number, offset = divmod(position, _PAGE)
            part = view[: _PAGE - offset]
            self._page(file, changed, number)[offset : offset + len(part)] = part
            position += len(part)
            view = view[len(part) :]

    def truncate(self, file: int, length: int) -> None:
        """See FileSystem."""
        changed = self._change(file)
        changed.length, changed.on_disk = length, min(changed.on_disk, length)
        changed.pages = {number: page for number, page in changed.pages.items() if number * _PAGE < length}
        if length % _PAGE and (last := changed.pages.get(length // _PAGE)) is not None:
            last[length % _PAGE :] = bytes(_PAGE - length % _PAGE)

    def next_data(self, file: int, position: int) -> int | None:
        """See FileSystem."""
        path, on_disk = self._opened[file]
        changed = self._changed.get(path)
        found = self._disk.next_data(on_disk, position) if on_disk is not None else None
        if changed is None:
            return found
        starts = [max(position, number * _PAGE) for number in changed.pages if (number + 1) * _PAGE > position]
        if found is not None and found < changed.on_disk:
            starts.append(found)
        return min(starts, default=None)

    def sync(self, file: int) -> None:
        """See FileSystem. Nothing comes to the disk."""

    def sync_directory(self, path: Path) -> None:
        """See FileSystem."""

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """See FileSystem. Directories are there as soon as they have a file."""

    def remove_directory(self, path: Path) -> None:
        """See FileSystem."""

    def rename(self, source: Path, target: Path) -> None:
        """See FileSystem."""
        file = self.open(source)
        try:
            content = self.read(file, self.size(source) or 0, 0)
        finally:
            self.close(file)
        self.unlink(source)
        self._hidden.add(target)
        self._changed[target] = _Changed(0, 0)
        file = self.open(target)
        self.write(file, content, 0)
        self.close(file)

    def unlink(self, path: Path) -> None:
        """See FileSystem."""
        if self.size(path) is None:
            _raise(errno.ENOENT, path)
        self.hide(path)

    def list(self, path: Path) -> list[str]:
        """See FileSystem."""
        depth = len(path.parts)
        made = {found.parts[depth] for found in self._changed if found.parts[:depth] == path.parts and found != path}
        return sorted(made | {name for name in self._disk.list(path) if path / name not in self._hidden})

    def size(self, path: Path) -> int | None:
        """See FileSystem."""
        if (changed := self._changed.get(path)) is not None:
            return changed.length
        return None if path in self._hidden else self._disk.size(path)

    def is_directory(self, path: Path) -> bool:
        """See FileSystem."""
        return self._disk.is_directory(path) or any(path in found.parents for found in self._changed)

    def open_directory(self, path: Path) -> int:
        """See FileSystem."""
        return self._handle(path, None)

    def lock(self, file: int) -> bool:
        """See FileSystem. Takes no lock."""
        return True

    def is_still(self, file: int, path: Path) -> bool:
        """See FileSystem."""
        return True

    def used_ratio(self, path: Path) -> float:
        """See FileSystem."""
        return self._disk.used_ratio(path)

    def _is_on_disk(self, path: Path) -> bool:
        return path not in self._hidden and self._disk.size(path) is not None

    def _handle(self, path: Path, on_disk: int | None) -> int:
        handle, self._next = self._next, self._next + 1
        self._opened[handle] = path, on_disk
        return handle

    def _change(self, file: int) -> _Changed:
        path, on_disk = self._opened[file]
        if path not in self._changed:
            length = 0 if on_disk is None else os.fstat(on_disk).st_size
            self._changed[path] = _Changed(length, length)
        return self._changed[path]

    def _page(self, file: int, changed: _Changed, number: int) -> bytearray:
        page = changed.pages.get(number)
        if page is None:
            _, on_disk = self._opened[file]
            shown = max(0, min(_PAGE, changed.on_disk - number * _PAGE))
            page = bytearray(os.pread(on_disk, shown, number * _PAGE) if on_disk is not None and shown else b"")
            page.extend(bytes(_PAGE - len(page)))
            changed.pages[number] = page
        return page


def _raise(number: int, path: Path) -> NoReturn:
    raise OSError(number, os.strerror(number), str(path))
