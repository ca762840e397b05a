"""The store's interface to the file system. All disk access uses it, so that tests can replace it to record writes and syncs."""

import errno
import os
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

from rocketmq_broker.platform.durability import sync_data, sync_directory
from rocketmq_broker.platform.files import (
    ignores_case,
    is_reserved,
    next_data,
    open_regular,
    read_at,
    set_length,
    used_ratio,
    write_at,
)
from rocketmq_broker.platform.locks import lock, open_directory


class FileSystem(Protocol):
    """The store's interface to a file system. All methods may raise OSError. A `file` is a descriptor that `open` returned."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """Opens a file for reading and writing, or for reading only if it is not writable."""

    def close(self, file: int) -> None:
        """Closes the file without a sync."""

    def read(self, file: int, length: int, position: int) -> bytes:
        """Returns `length` bytes from a position, or fewer at the end of the file."""

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes all bytes. They are on disk only after `sync`. If the call fails, some of them may have been written."""

    def truncate(self, file: int, length: int) -> None:
        """Sets the file's length in bytes. Added bytes read as zeros and take no disk space."""

    def next_data(self, file: int, position: int) -> int | None:
        """Returns the position of the first byte at or after `position` that may be non-zero, or None if there is none."""

    def sync(self, file: int) -> None:
        """Syncs the file's content and length. Both are on disk on return."""

    def sync_directory(self, path: Path) -> None:
        """Syncs the directory. The names in it are on disk on return."""

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Creates a directory and its parents, unless it exists. If `is_durable` is False, the caller must sync the parents."""

    def remove_directory(self, path: Path) -> None:
        """Removes an empty directory."""

    def rename(self, source: Path, target: Path) -> None:
        """Moves a file to the target atomically. Replaces an existing target. The change is durable after `sync_directory`."""

    def unlink(self, path: Path) -> None:
        """Removes a file."""

    def list(self, path: Path) -> list[str]:
        """Returns the sorted names in a directory, or an empty list if the directory does not exist."""

    def size(self, path: Path) -> int | None:
        """Returns a file's size in bytes, or None if the file does not exist."""

    def is_directory(self, path: Path) -> bool:
        """Returns whether the path is a directory."""

    def open_directory(self, path: Path) -> int:
        """Opens a directory for locking."""

    def lock(self, file: int) -> bool:
        """Acquires the file's lock, which `close` releases. Returns False if another process holds it."""

    def is_still(self, file: int, path: Path) -> bool:
        """Returns whether the path still refers to this open file or directory, and not to one that replaced it."""

    def ignores_case(self, path: Path) -> bool:
        """Returns whether names that differ only in case are one name. `path` must exist, and its name must contain a letter."""

    def is_reserved(self, path: Path) -> bool:
        """Returns whether the operating system rejects the path's name."""

    def used_ratio(self, path: Path) -> float:
        """Returns the used share of the disk, 0 to 1."""


DIRECTORY_MODE = 0o700
"""The mode of new folders, which are private to the broker's user, as new files are. A stricter umask still applies."""


class OsFileSystem:
    """The operating system's file system."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """Opens a file for reading and writing. If the file is not writable and `create` is False, opens it for reading only."""
        try:
            return open_regular(path, os.O_RDWR | (os.O_CREAT if create else 0))
        except OSError as error:
            if create or error.errno not in (errno.EROFS, errno.EACCES):
                raise
            return open_regular(path, os.O_RDONLY)

    def close(self, file: int) -> None:
        """Closes the file without a sync."""
        os.close(file)

    def read(self, file: int, length: int, position: int) -> bytes:
        """Reads at most `length` bytes with pread. Returns fewer bytes at the end of the file."""
        return read_at(file, length, position)

    def write(self, file: int, data: bytes | bytearray | memoryview, position: int) -> None:
        """Writes all bytes with pwrite, in several calls if needed."""
        written = write_at(file, data, position)
        while written < len(data):
            # When the disk fills up, the first write is short and the next one fails.
            written += write_at(file, memoryview(data)[written:], position + written)

    def truncate(self, file: int, length: int) -> None:
        """Sets the file's length in bytes. Added bytes read as zeros and take no disk space."""
        set_length(file, length)

    def next_data(self, file: int, position: int) -> int | None:
        """Returns the next position outside a hole of a sparse file (SEEK_DATA), or None if there is none."""
        return next_data(file, position)

    def sync(self, file: int) -> None:
        """Syncs content and length, with fdatasync on Linux."""
        sync_data(file)

    def sync_directory(self, path: Path) -> None:
        """Syncs the directory, if the operating system supports this."""
        sync_directory(path)

    def make_directory(self, path: Path, *, is_durable: bool = True) -> None:
        """Creates the missing directories, parents first, and syncs each parent if `is_durable`."""
        if path.is_dir():
            return
        self.make_directory(path.parent, is_durable=is_durable)
        path.mkdir(DIRECTORY_MODE, exist_ok=True)
        if is_durable:
            self.sync_directory(path.parent)

    def remove_directory(self, path: Path) -> None:
        """Removes an empty directory."""
        path.rmdir()

    def rename(self, source: Path, target: Path) -> None:
        """Renames the source to the target, and replaces an existing target."""
        source.replace(target)

    def unlink(self, path: Path) -> None:
        """Removes the file."""
        path.unlink()

    def list(self, path: Path) -> list[str]:
        """Returns the sorted names, or an empty list for a missing directory."""
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def size(self, path: Path) -> int | None:
        """Returns the size in bytes, or None for a missing file."""
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None

    def is_directory(self, path: Path) -> bool:
        """Returns whether the path is a directory."""
        return path.is_dir()

    def open_directory(self, path: Path) -> int:
        """Opens the directory read-only, for locking."""
        return open_directory(path)

    def lock(self, file: int) -> bool:
        """Locks the file's first byte, as Java does. The lock also excludes a second store in the same process."""
        return lock(file)

    def is_still(self, file: int, path: Path) -> bool:
        """Returns whether the open file and the path have the same device and inode."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def ignores_case(self, path: Path) -> bool:
        """Returns whether the file is also found if the case of the letters in its name is swapped."""
        return ignores_case(path)

    def is_reserved(self, path: Path) -> bool:
        """Returns whether the operating system rejects the path's name. Windows rejects CON, for example."""
        return is_reserved(path)

    def used_ratio(self, path: Path) -> float:
        """Returns the used share of the disk, 0 to 1. As in RocketMQ, space reserved for root counts as used."""
        return used_ratio(path)


class OpenFiles:
    """A cache of open files that closes the least recently used one when its limit is reached."""

    def __init__(self, files: FileSystem, limit: int) -> None:
        """Creates an empty cache that keeps at most `limit` files open."""
        self.files = files
        self._limit = limit
        self._open: OrderedDict[Path, int] = OrderedDict()

    def get(self, path: Path) -> int:
        """Returns the open file at a path, which is valid until the next call. Raises OSError if the file cannot be opened."""
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
        """Closes the file if it is open. Call this method before the file is deleted."""
        file = self._open.pop(path, None)
        if file is not None:
            self.files.close(file)

    def close(self) -> None:
        """Closes all files."""
        while self._open:
            self.files.close(self._open.popitem()[1])


def create_file(files: FileSystem, path: Path, size: int) -> None:
    """Creates a sparse file of `size` zero bytes. The file and its name are on disk on return."""
    file = files.open(path, create=True)
    try:
        files.truncate(file, size)
        files.sync(file)
    finally:
        files.close(file)
    files.sync_directory(path.parent)


def create_file_lazily(files: FileSystem, path: Path, size: int) -> None:
    """Creates a sparse file of `size` zero bytes. The caller must sync the file and its directories."""
    files.make_directory(path.parent, is_durable=False)
    file = files.open(path, create=True)
    try:
        files.truncate(file, size)
    finally:
        files.close(file)


def replace_file(files: FileSystem, path: Path, content: bytes, backup: Path | None = None) -> None:
    """Replaces a file's content durably. After a crash, the file or `backup` has the complete old or new content."""
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
    """Returns the whole content of a file, or None if the file does not exist."""
    size = files.size(path)
    if size is None:
        return None
    file = files.open(path)
    try:
        return files.read(file, size, 0)
    finally:
        files.close(file)
