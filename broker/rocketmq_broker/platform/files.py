"""Functions for files and disks: reads and writes at a position, holes of sparse files, file names, and disk usage."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    from rocketmq_broker.platform import windows

    SAFE_OPEN_FLAGS: Final = os.O_BINARY | os.O_NOINHERIT
    """Flags for `os.open`: bytes as they are, and not for child processes."""
    read_at = windows.read_at
    write_at = windows.write_at
    set_length = windows.set_length
else:
    SAFE_OPEN_FLAGS: Final = os.O_CLOEXEC | os.O_NONBLOCK
    """Flags for `os.open`: never blocks, which opening a named pipe could, and not for child processes."""
    read_at = os.pread
    write_at = os.pwrite
    set_length = os.ftruncate

_CHUNK: Final = 1 << 20
_BLOCK: Final = 512
"""The unit of st_blocks."""


def open_regular(path: str | Path, flags: int) -> int:
    """Opens a regular file. Raises OSError for other kinds of files, because opening a named pipe could block forever.

    A new file is private to the broker's user, because messages may be confidential. A stricter umask still applies.
    """
    file = os.open(path, flags | SAFE_OPEN_FLAGS, 0o600)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def next_data(file: int, position: int) -> int | None:
    """Returns the position of the first byte at or after `position` that may be non-zero, or None if all bytes are zero.

    On Linux and macOS this function skips the holes of a sparse file with SEEK_DATA. On Windows it reads the file.
    """
    if sys.platform == "win32":
        return next((at for at, data in _chunks(file, position) if data.strip(b"\0")), None)
    try:
        return os.lseek(file, position, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise


def end_of_data(file: int) -> int:
    """Returns the end of the last part of a file that may contain non-zero bytes, or 0 if all bytes are zero."""
    if sys.platform == "win32":
        return max((at + len(data) for at, data in _chunks(file, 0) if data.strip(b"\0")), default=0)
    end = 0
    while (begin := next_data(file, end)) is not None:
        end = os.lseek(file, begin, os.SEEK_HOLE)
    return end


def _chunks(file: int, position: int) -> Iterator[tuple[int, bytes]]:
    while data := read_at(file, _CHUNK, position):
        yield position, data
        position += len(data)


def ignores_case(path: Path) -> bool:
    """Returns True if names that differ only in case are the same file. `path` must exist, and its name must contain a letter."""
    try:
        return path.samefile(path.with_name(path.name.swapcase()))
    except FileNotFoundError:
        return False


def is_reserved(path: Path) -> bool:
    """Returns True if the system rejects the path's name. Windows reserves names such as CON, and some characters."""
    if sys.platform != "win32":
        return False
    try:
        os.lstat(path)
    except FileNotFoundError:
        pass
    except OSError:
        return True
    return os.path.basename(os.path.abspath(path)) != path.name


def used_ratio(path: Path) -> float:
    """Returns the used share of the disk, between 0 and 1. As in RocketMQ, space reserved for root counts as used."""
    if sys.platform == "win32":
        import shutil  # which takes memory, and is not needed elsewhere

        space = shutil.disk_usage(path)
        return space.used / space.total if space.total else 1.0
    disk = os.statvfs(path)
    used = disk.f_blocks - disk.f_bfree
    available = used + disk.f_bavail
    return used / available if available else 1.0


def size_of_file(path: str) -> int:
    """Returns the disk space that a file occupies, in bytes. On Windows, the holes of a sparse file count too."""
    status = os.lstat(path)
    if sys.platform == "win32":
        return status.st_size
    return status.st_blocks * _BLOCK


def mode_for_others(path: Path) -> int | None:
    """Returns the mode of a folder if other users can access it, or None if they cannot.

    Returns None on Windows, where a folder inherits its parent's access list. A user's own folders are private there.
    """
    if sys.platform == "win32":
        return None
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if mode & 0o077 else None
