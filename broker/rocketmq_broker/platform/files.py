"""Reads and writes at positions, the holes of sparse files, the names of files, and the disk's fill level."""

from __future__ import annotations

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


def next_data(file: int, position: int) -> int | None:
    """Returns the position of the first byte at or after `position` that may be non-zero, or None if there is none.

    Linux and macOS say where the holes of a sparse file are. On Windows the file is read.
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
    """Returns the end of the last part of a file that may be non-zero, and 0 if there is none."""
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
    """Returns whether names that differ only in case are one name. `path` must exist, and its name must have a letter."""
    try:
        return path.samefile(path.with_name(path.name.swapcase()))
    except FileNotFoundError:
        return False


def is_reserved(path: Path) -> bool:
    """Returns whether the system does not accept the path's name. Windows reserves CON and others, and some characters."""
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
    """Returns the used share of the disk, 0 to 1. As in RocketMQ, space reserved for root counts as used."""
    if sys.platform == "win32":
        import shutil  # which takes memory, and is not needed elsewhere

        space = shutil.disk_usage(path)
        return space.used / space.total if space.total else 1.0
    disk = os.statvfs(path)
    used = disk.f_blocks - disk.f_bfree
    available = used + disk.f_bavail
    return used / available if available else 1.0


def size_of_file(path: str) -> int:
    """Returns the disk space that a file occupies, in bytes. On Windows holes of a sparse file count, too."""
    status = os.lstat(path)
    if sys.platform == "win32":
        return status.st_size
    return status.st_blocks * _BLOCK


def mode_for_others(path: Path) -> int | None:
    """Returns the mode of a folder that other users can access; None if they cannot.

    Windows has no such mode: a folder inherits the access list of its parent, and that of a user's own folders is private.
    """
    if sys.platform == "win32":
        return None
    mode = stat.S_IMODE(path.stat().st_mode)
    return mode if mode & 0o077 else None
