"""Syncs files in a thread, on systems where the broker cannot use a flush process (`platform.processes`)."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rocketmq_broker.platform.durability import sync_data
from rocketmq_broker.platform.files import SAFE_OPEN_FLAGS
from rocketmq_broker.platform.processes import HAS_FLUSH_PROCESS
from rocketmq_broker.server.durability.flusher import Flusher, NewFlushing


class FlushThread:
    """Runs one flush at a time, in the event loop's thread pool. The thread competes with the broker for Python's global lock."""

    def __init__(
        self, on_answer: Callable[[int], None], on_unavailable: Callable[[str | None], None], make_room: Callable[[], None]
    ) -> None:
        """Stores `on_answer`, which is called with 0 or an errno after each flush. Ignores the other callbacks."""
        self._on_answer = on_answer
        self._running: asyncio.Future[int] | None = None

    def start(self) -> None:
        """Does nothing, because the first request starts the thread."""

    def request(self, paths: Sequence[Path]) -> None:
        """Requests a sync of these files."""
        self._running = asyncio.get_running_loop().run_in_executor(None, _sync, paths)
        self._running.add_done_callback(self._done)

    def stop(self) -> None:
        """Discards the result of a pending request."""
        self._running = None

    def _done(self, flush: asyncio.Future[int]) -> None:
        if flush is self._running and not flush.cancelled():
            self._running = None
            self._on_answer(flush.result())


def _sync(paths: Sequence[Path]) -> int:
    """Returns 0 if all files are on disk, or the errno of the last failure."""
    failed = 0
    for path in paths:
        try:
            file = os.open(path, os.O_RDWR | SAFE_OPEN_FLAGS)
            try:
                sync_data(file)
            finally:
                os.close(file)
        except OSError as error:
            failed = error.errno or -1
    return failed


USUAL_FLUSHING: Final[NewFlushing] = Flusher if HAS_FLUSH_PROCESS else FlushThread
"""The flush process, or where there can be none the thread."""
