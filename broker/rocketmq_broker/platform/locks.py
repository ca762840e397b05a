"""Locks on files and folders. The system releases a lock when its process ends, even after a crash.

Linux and macOS: a POSIX lock on the first byte, as in Java, and a flock, which prevents a second lock in the same process. Both
are advisory. Windows: a lock on the first byte, as in Java. Windows cannot lock folders or remove an open lock file.
"""

import contextlib
import errno
import os
import stat
import struct
import sys
from pathlib import Path
from typing import Final

with contextlib.suppress(ModuleNotFoundError):  # Windows has no such module
    import fcntl


if sys.platform == "win32":
    from rocketmq_broker.platform import windows

    def lock(file: int) -> bool:
        """Locks an open file until `file` is closed. Returns False if it is already locked. Returns True for a folder."""
        return stat.S_ISDIR(os.fstat(file).st_mode) or windows.lock_first_byte(file)

    def holder(file: int) -> str | None:
        """Returns "another process" if the file's first byte is locked, or None. Windows does not report the process id."""
        return "another process" if windows.is_first_byte_locked(file) else None

    def open_directory(path: Path) -> int:
        """Opens a folder for `lock`."""
        return windows.open_folder(path)

else:
    if sys.platform == "darwin":
        _FLOCK: Final = struct.Struct("qqihh")
        """The layout of macOS' struct flock, with the fields start, length, process id, type and whence."""
    else:
        _FLOCK: Final = struct.Struct("hhqqi")
        """The layout of Linux's struct flock, with the fields type, whence, start, length and process id."""

    def lock(file: int) -> bool:
        """Locks an open file or folder until `file` is closed. Returns False if it is already locked."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stat.S_ISREG(os.fstat(file).st_mode):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def holder(file: int) -> str | None:
        """Returns the process that has locked the file's first byte, or None if it is not locked. Does not lock the file."""
        if sys.platform == "darwin":
            asked = _FLOCK.pack(0, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)
            _, _, process_id, kind, _ = _FLOCK.unpack_from(fcntl.fcntl(file, fcntl.F_GETLK, asked))
        else:
            asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            kind, *_, process_id = _FLOCK.unpack_from(fcntl.fcntl(file, fcntl.F_GETLK, asked))
        return None if kind == fcntl.F_UNLCK else f"process {process_id}"

    def open_directory(path: Path) -> int:
        """Opens a folder for `lock`."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
