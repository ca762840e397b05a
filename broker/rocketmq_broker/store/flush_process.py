"""The parent's side of the flush process, which syncs files so that the broker's process never blocks on the disk.

A thread would compete with the broker's thread for the global interpreter lock. `flush_helper` is the child's side.
"""

import contextlib
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rocketmq_broker.platform import flush_helper
from rocketmq_broker.platform.processes import signals_blocked
from rocketmq_broker.platform.signals import STOP_SIGNALS

_INT32 = struct.Struct(">i")
_EXIT_TIMEOUT_S = 5.0
"""The time in seconds to wait for the helper to exit before it is killed."""


class FlushProcess:
    """The flush process. It syncs files at the request of the broker, one request at a time. Not thread-safe."""

    def __init__(self) -> None:
        """Starts the helper. Raises OSError."""
        command = [sys.executable, "-I", "-S", os.fspath(Path(flush_helper.__file__).resolve())]
        with signals_blocked(STOP_SIGNALS):
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
        """Returns the descriptor that becomes readable when a result arrives."""
        return self._answers

    def request(self, paths: Sequence[Path]) -> None:
        """Sends a request to sync these files. Raises OSError if the helper has exited."""
        message = b"\0".join(map(os.fsencode, paths))
        os.write(self._requests, _INT32.pack(len(message)) + message)

    def answer(self) -> int:
        """Waits for the result of the last request, and returns 0 or the errno of a failed sync.

        Raises OSError if the helper has exited.
        """
        data = os.read(self._answers, _INT32.size)
        if len(data) < _INT32.size:
            raise BrokenPipeError("the flush process has exited")
        return int(_INT32.unpack(data)[0])

    def close(self) -> None:
        """Stops the helper and waits until it exits."""
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()
        try:
            self._process.wait(timeout=_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
