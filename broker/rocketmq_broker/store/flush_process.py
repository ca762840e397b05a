"""The helper process that syncs files, so that the broker's process never waits for the disk.

A thread could wait as well, but the interpreter lock would slow down both. Request and answer:

    LENGTH 4 | path \\0 path \\0 ...        ->        ERRNO 4, 0 if all of them are on disk

The helper ends with its standard input, and so with its parent in every case. It runs as a separate script and
imports nothing of the broker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

_INT32 = struct.Struct(">i")
_KEPT_OPEN = 4
_PATIENCE_S = 5.0
"""Seconds for the helper to end by itself."""


class FlushProcess:
    """The parent's end. One request at a time; not safe for use from several threads."""

    def __init__(self) -> None:
        """Starts the helper. Raises OSError."""
        command = [sys.executable, "-E", "-S", "-s", os.fspath(Path(__file__).resolve())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._streams = (self._process.stdin, self._process.stdout)
        self._requests, self._answers = (stream.fileno() for stream in self._streams)

    @property
    def pid(self) -> int:
        """Returns the helper's process id."""
        return self._process.pid

    def fileno(self) -> int:
        """Returns the descriptor that becomes readable with an answer."""
        return self._answers

    def request(self, paths: Sequence[Path]) -> None:
        """Asks the helper to sync these files. Raises OSError if the helper is gone."""
        message = b"\0".join(map(os.fsencode, paths))
        os.write(self._requests, _INT32.pack(len(message)) + message)

    def answer(self) -> int:
        """Waits for the answer: 0, or the errno of a file that could not be synced. Raises OSError if the helper is gone."""
        data = os.read(self._answers, _INT32.size)
        if len(data) < _INT32.size:
            raise BrokenPipeError("the flush process is gone")
        return int(_INT32.unpack(data)[0])

    def close(self) -> None:
        """Ends the helper and waits for it."""
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()
        try:
            self._process.wait(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Runs the helper's end: answers requests until there are none."""
    kept_open: dict[bytes, int] = {}
    while len(head := requests.read(_INT32.size)) == _INT32.size:
        message = requests.read(_INT32.unpack(head)[0])
        error = 0
        for path in filter(None, message.split(b"\0")):
            try:
                os.fdatasync(_opened(kept_open, path))
            except OSError as failure:
                error = failure.errno or -1
        answers.write(_INT32.pack(error))
        answers.flush()


def _opened(kept_open: dict[bytes, int], path: bytes) -> int:
    file = kept_open.pop(path, None)
    if file is not None and _is_deleted(file):
        # And perhaps created again.
        os.close(file)
        file = None
    if file is None:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    kept_open[path] = file
    if len(kept_open) > _KEPT_OPEN:
        os.close(kept_open.pop(next(iter(kept_open))))
    return file


def _is_deleted(file: int) -> bool:
    """Returns whether the open file's name is gone.

    Not by fstat where there is /proc: Linux gives a file a new time at the first write after each fstat, and syncs that, too.
    """
    try:
        return os.readlink(f"/proc/self/fd/{file}").endswith(" (deleted)")
    except OSError:
        return os.fstat(file).st_nlink == 0


if __name__ == "__main__":
    # Ctrl-C reaches the whole group; the parent still needs its last flush.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):
        # Unbuffered: the exit must not retry output to a dead parent.
        serve(sys.stdin.buffer, os.fdopen(sys.stdout.fileno(), "wb", buffering=0, closefd=False))
