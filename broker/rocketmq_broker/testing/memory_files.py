"""A disk in memory: it knows what is synced, can be full, and can lose its power."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn


class _File:
    """Bytes up to the last one that was written; from there to `length` all are zero."""

    __slots__ = ("before", "content", "length")

    def __init__(self) -> None:
        self.content = bytearray()
        self.length = 0
        self.before: list[tuple[int, int, bytes, int]] = []
        """What was changed since the last sync, the latest last: where, how many bytes, what was there, how long the file was."""

    def write(self, data: bytes | bytearray | memoryview, position: int) -> None:
        content = self.content
        end = position + len(data)
        self.before.append((position, len(data), bytes(content[position:end]), self.length))
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position:end] = data
        self.length = max(self.length, end)

    def truncate(self, length: int) -> None:
        self.before.append((length, 0, bytes(self.content[length:]), self.length))
        del self.content[length:]
        self.length = length

    def read(self, length: int, position: int) -> bytes:
        end = min(position + length, self.length)
        found = bytes(self.content[position:end])
        return found + bytes(max(0, end - position - len(found)))

    def synced(self) -> _File:
        """As it was when it was synced last."""
        file = self.copy()
        for position, size, content, length in reversed(self.before):
            file.content[position : position + size] = content
            file.length = length
        return file

    def copy(self) -> _File:
        file = _File()
        file.content, file.length = bytearray(self.content), self.length
        return file


class MemoryFiles:
    """Files by their paths. Names are durable at once, contents after `sync`."""

    def __init__(self) -> None:
        self.is_full = False
        """Whether nothing can be written any more."""
        self.reads = 0
        self.writes = 0
        self._files: dict[Path, _File] = {}
        self._folders: set[Path] = set()
        """Those that have had a file in them, or below them."""
        self._opened: dict[int, _File] = {}
        self._directories: dict[int, Path] = {}
        self._locked: dict[int, object] = {}
        self._next = 1

    def killed(self) -> MemoryFiles:
        """What the next process finds if this one is killed: everything written."""
        return self._left({path: file.copy() for path, file in self._files.items()})

    def powered_off(self) -> MemoryFiles:
        """What the next process finds after a power failure: everything synced."""
        return self._left({path: file.synced() for path, file in self._files.items()})

    def content(self, path: Path) -> bytearray:
        """What a file holds, without the zeros at its end that were never written; whoever changes it damages the file."""
        return self._files[path].content

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return sorted(self._files)

    # FileSystem

    def open(self, path: Path, *, create: bool = False) -> int:
        """See FileSystem."""
        file = self._files.get(path)
        if file is None:
            if not create:
                _raise(errno.ENOENT, path)
            file = self._files[path] = _File()
            self._folders.update(path.parents)
        return self._handle(file)

    def close(self, file: int) -> None:
        """See FileSystem."""
        self._opened.pop(file, None)
        self._directories.pop(file, None)
        self._locked.pop(file, None)

    def read(self, file: int, length: int, position: int) -> bytes:
        """See FileSystem."""
        self.reads += 1
        return self._opened[file].read(length, position)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """See FileSystem."""
        if self.is_full:
            _raise(errno.ENOSPC)
        self.writes += 1
        self._opened[file].write(data, position)

    def truncate(self, file: int, length: int) -> None:
        """See FileSystem."""
        self._opened[file].truncate(length)

    def next_data(self, file: int, position: int) -> int | None:
        """See FileSystem."""
        rest = self._opened[file].content[position:]
        stripped = rest.lstrip(b"\0")
        return position + len(rest) - len(stripped) if stripped else None

    def sync(self, file: int) -> None:
        """See FileSystem."""
        self._opened[file].before.clear()

    def sync_directory(self, path: Path) -> None:
        """See FileSystem. Names are durable at once."""

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """See FileSystem. Directories are there."""

    def remove_directory(self, path: Path) -> None:
        """See FileSystem."""
        self._folders.discard(path)

    def rename(self, source: Path, target: Path) -> None:
        """See FileSystem."""
        if source not in self._files:
            _raise(errno.ENOENT, source)
        self._files[target] = self._files.pop(source)
        self._folders.update(target.parents)

    def unlink(self, path: Path) -> None:
        """See FileSystem."""
        if self._files.pop(path, None) is None:
            _raise(errno.ENOENT, path)

    def list(self, path: Path) -> list[str]:
        """See FileSystem."""
        depth = len(path.parts)
        return sorted({found.parts[depth] for found in self._files if found.parts[:depth] == path.parts and found != path})

    def size(self, path: Path) -> int | None:
        """See FileSystem."""
        file = self._files.get(path)
        return None if file is None else file.length

    def is_directory(self, path: Path) -> bool:
        """See FileSystem."""
        return path in self._folders

    def open_directory(self, path: Path) -> int:
        """See FileSystem."""
        return self._handle(_File(), path)

    def lock(self, file: int) -> bool:
        """See FileSystem."""
        wanted = self._directories.get(file, self._opened[file])
        if any(held == wanted for other, held in self._locked.items() if other != file):
            return False
        self._locked[file] = wanted
        return True

    def is_still(self, file: int, path: Path) -> bool:
        """See FileSystem."""
        return file in self._directories or self._files.get(path) is self._opened.get(file)

    def used_ratio(self, path: Path) -> float:
        """See FileSystem."""
        return 1.0 if self.is_full else 0.0

    def _handle(self, file: _File, directory: Path | None = None) -> int:
        handle = self._next
        self._next += 1
        self._opened[handle] = file
        if directory is not None:
            self._directories[handle] = directory
        return handle

    @staticmethod
    def _left(files: dict[Path, _File]) -> MemoryFiles:
        left = MemoryFiles()
        left._files = files
        left._folders.update(*(path.parents for path in files))
        return left


def _raise(number: int, path: Path | None = None) -> NoReturn:
    raise OSError(number, os.strerror(number), *([str(path)] if path is not None else []))
