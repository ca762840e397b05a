"""The only way to the disk: a small port that a test can replace by one that records writes and syncs."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections import OrderedDict
from pathlib import Path
from typing import Protocol


class FileSystem(Protocol):
    """What the store asks of a file system. All methods raise OSError. A file is an int that `open` returned."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """Opens a file for reading and writing, read-only where it cannot be written."""

    def close(self, file: int) -> None:
        """Gives the file back; nothing is synced."""

    def read(self, file: int, length: int, position: int) -> bytes:
        """Bytes from a position; fewer at the end of the file."""

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes all of it, or raises with an unknown part of it written. On disk only after `sync`."""

    def truncate(self, file: int, length: int) -> None:
        """Shortens or lengthens; what is added reads as zero and takes no space."""

    def next_data(self, file: int, position: int) -> int | None:
        """Where from a position on the first byte is that may not be zero, or None if there is none."""

    def sync(self, file: int) -> None:
        """Returns when contents and length are on disk."""

    def sync_directory(self, path: Path) -> None:
        """Returns when the names in the directory are on disk."""

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Creates it with its parents; nothing happens if it exists. Without `is_durable` the caller syncs their parents."""

    def remove_directory(self, path: Path) -> None:
        """Removes an empty directory."""

    def rename(self, source: Path, target: Path) -> None:
        """Replaces the target at once. Durable after `sync_directory`."""

    def unlink(self, path: Path) -> None:
        """Removes a file."""

    def list(self, path: Path) -> list[str]:
        """The names in a directory, sorted; none if there is no such directory."""

    def size(self, path: Path) -> int | None:
        """Bytes of a file, or None if there is none."""

    def is_directory(self, path: Path) -> bool:
        """Whether there is a directory of that name."""

    def open_directory(self, path: Path) -> int:
        """Opens a directory, to be locked."""

    def lock(self, file: int) -> bool:
        """Takes the lock that ends with the file's closing; False if somebody else has it."""

    def is_still(self, file: int, path: Path) -> bool:
        """Whether the path still leads to the open file or directory."""

    def used_ratio(self, path: Path) -> float:
        """How full the disk is, 0 to 1."""


FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
"""What is made is for the broker's user alone: messages may be confidential. A stricter umask counts."""


def open_regular(path: Path, flags: int) -> int:
    """Opens a file of the disk. Raises OSError for anything else under its name: a FIFO would wait without end."""
    file = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, FILE_MODE)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "no regular file", str(path))


class OsFileSystem:
    """The real one."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """See FileSystem."""
        try:
            return open_regular(path, os.O_RDWR | (os.O_CREAT if create else 0))
        except OSError as error:
            if create or error.errno not in (errno.EROFS, errno.EACCES):
                raise
            return open_regular(path, os.O_RDONLY)

    def close(self, file: int) -> None:
        """See FileSystem."""
        os.close(file)

    def read(self, file: int, length: int, position: int) -> bytes:
        """See FileSystem."""
        return os.pread(file, length, position)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """See FileSystem."""
        written = os.pwrite(file, data, position)
        while written < len(data):
            # A full disk first writes less than asked, then fails.
            written += os.pwrite(file, memoryview(data)[written:], position + written)

    def truncate(self, file: int, length: int) -> None:
        """See FileSystem."""
        os.ftruncate(file, length)

    def next_data(self, file: int, position: int) -> int | None:
        """See FileSystem. A sparse file's holes cost nothing to pass over."""
        try:
            return os.lseek(file, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            raise

    def sync(self, file: int) -> None:
        """See FileSystem."""
        os.fdatasync(file)

    def sync_directory(self, path: Path) -> None:
        """See FileSystem."""
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """See FileSystem."""
        if path.is_dir():
            return
        self.make_directory(path.parent, is_durable=is_durable)
        path.mkdir(DIRECTORY_MODE, exist_ok=True)
        if is_durable:
            self.sync_directory(path.parent)

    def remove_directory(self, path: Path) -> None:
        """See FileSystem."""
        path.rmdir()

    def rename(self, source: Path, target: Path) -> None:
        """See FileSystem."""
        source.replace(target)

    def unlink(self, path: Path) -> None:
        """See FileSystem."""
        path.unlink()

    def list(self, path: Path) -> list[str]:
        """See FileSystem."""
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def size(self, path: Path) -> int | None:
        """See FileSystem."""
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None

    def is_directory(self, path: Path) -> bool:
        """See FileSystem."""
        return path.is_dir()

    def open_directory(self, path: Path) -> int:
        """See FileSystem."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def lock(self, file: int) -> bool:
        """See FileSystem. Java takes the first byte's POSIX lock; flock besides keeps out a second store of one process."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stat.S_ISREG(os.fstat(file).st_mode):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def is_still(self, file: int, path: Path) -> bool:
        """See FileSystem."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def used_ratio(self, path: Path) -> float:
        """See FileSystem. As RocketMQ counts: what ordinary users may not have counts as used."""
        disk = os.statvfs(path)
        used = disk.f_blocks - disk.f_bfree
        available = used + disk.f_bavail
        return used / available if available else 1.0


class OpenFiles:
    """The files in use, of which the least recently used are closed when there are too many."""

    def __init__(self, files: FileSystem, limit: int) -> None:
        """`limit` is how many stay open."""
        self.files = files
        self._limit = limit
        self._open: OrderedDict[Path, int] = OrderedDict()

    def get(self, path: Path) -> int:
        """The open file of that path. Raises OSError if there is none. Valid until the next call."""
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        if len(self._open) >= self._limit:
            self._close_least_used()
        file = self._open[path] = self._opened(path)
        return file

    def _opened(self, path: Path) -> int:
        while True:
            try:
                return self.files.open(path)
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open:
                    raise
                self._close_least_used()

    def _close_least_used(self) -> None:
        self.files.close(self._open.popitem(last=False)[1])

    def forget(self, path: Path) -> None:
        """Closes it if it is open: it is about to be deleted."""
        file = self._open.pop(path, None)
        if file is not None:
            self.files.close(file)

    def close(self) -> None:
        """Closes them all."""
        while self._open:
            self.files.close(self._open.popitem()[1])


def create_file(files: FileSystem, path: Path, size: int) -> None:
    """A file of that size, all zeros and sparse; it and its name are on disk when this returns."""
    file = files.open(path, create=True)
    try:
        files.truncate(file, size)
        files.sync(file)
    finally:
        files.close(file)
    files.sync_directory(path.parent)


def create_file_lazily(files: FileSystem, path: Path, size: int) -> None:
    """A file of that size, all zeros and sparse; the caller syncs it and the directories down to it."""
    files.make_directory(path.parent, is_durable=False)
    file = files.open(path, create=True)
    try:
        files.truncate(file, size)
    finally:
        files.close(file)


def replace_file(files: FileSystem, path: Path, content: bytes, backup: Path | None = None) -> None:
    """The new content under the old name, durably. A crash leaves the one or the other, or with a backup at least that."""
    part = path.with_name(path.name + ".tmp")
    file = files.open(part, create=True)
    try:
        files.truncate(file, 0)
        files.write(file, content, 0)
        files.sync(file)
    finally:
        files.close(file)
    if backup is not None:
        files.rename(path, backup)
    files.rename(part, path)
    files.sync_directory(path.parent)


def read_file(files: FileSystem, path: Path) -> bytes | None:
    """The whole content, or None if there is no such file."""
    size = files.size(path)
    if size is None:
        return None
    file = files.open(path)
    try:
        return files.read(file, size, 0)
    finally:
        files.close(file)
