"""The program of the flush process. It reads requests from its standard input, syncs the named files, and responds.

    LENGTH 4 | path \\0 path \\0 ...        ->        ERRNO 4, or 0 if all files are on disk

It writes the responses to its standard output, and exits at the end of its input, so it never outlives its parent.
It runs as a script, without the broker's package, and imports only modules that Python loads at startup, which halves its
memory use from 8 MiB to 4 MiB. For this reason it defines `sync_data` and `sync_file`. Other modules import them from
`durability`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_NUMBER = 4
_KEPT_OPEN = 4


def sync_data(file: int) -> None:
    """Syncs the file's content and length. On return, both are on disk."""
    if sys.platform == "linux":
        os.fdatasync(file)
    else:
        sync_file(file)


def sync_file(file: int) -> None:
    """Syncs the file's content, length and times. On return, all of them are on disk.

    On macOS the disk also writes its own cache (F_FULLFSYNC), as in SQLite and PostgreSQL. After fsync alone, the data may be
    only in that cache.
    """
    if sys.platform != "darwin":
        os.fsync(file)
        return
    import errno
    import fcntl

    try:
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    except OSError as error:
        # A file system without it, such as one on a network. Other errors mean that the data is not on disk.
        if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
            raise
        os.fsync(file)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Reads requests until the input ends. Syncs the files of each request, and writes a response."""
    kept_open: dict[bytes, int] = {}
    while len(head := requests.read(_NUMBER)) == _NUMBER:
        message = requests.read(int.from_bytes(head, "big"))
        error = 0
        for path in filter(None, message.split(b"\0")):
            try:
                sync_data(_opened(kept_open, path))
            except OSError as failure:
                error = failure.errno or -1
        answers.write(error.to_bytes(_NUMBER, "big", signed=True))
        answers.flush()


def _opened(kept_open: dict[bytes, int], path: bytes) -> int:
    file = kept_open.pop(path, None)
    if file is not None and _is_deleted(file):
        # The path may refer to a new file now.
        os.close(file)
        file = None
    if file is None:
        file = os.open(path, os.O_RDONLY)  # child processes do not inherit it
    kept_open[path] = file
    if len(kept_open) > _KEPT_OPEN:
        os.close(kept_open.pop(next(iter(kept_open))))
    return file


def _is_deleted(file: int) -> bool:
    """Returns True if the open file was deleted.

    Reads /proc if it exists, because fstat makes the next sync slower. After fstat, the next write sets a new modification time,
    which Linux also syncs.
    """
    try:
        return os.readlink(f"/proc/self/fd/{file}").endswith(" (deleted)")
    except OSError:
        return os.fstat(file).st_nlink == 0


if __name__ == "__main__":
    try:  # noqa: SIM105 (contextlib is not imported)
        # The output is unbuffered, so that the exit does not retry output to a dead parent.
        serve(sys.stdin.buffer, os.fdopen(sys.stdout.fileno(), "wb", buffering=0, closefd=False))
    except BrokenPipeError:
        pass
