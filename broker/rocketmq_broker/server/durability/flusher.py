"""Runs the process that syncs files to disk, and restarts it when it ends."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from rocketmq_broker.store.flush_process import FlushProcess

logger = logging.getLogger(__name__)

_AGAIN_AFTER_S: Final = 1.0


class Flushing(Protocol):
    """Syncs files to disk outside the event loop, one request at a time."""

    def start(self) -> None:
        """Prepares for requests. Raises OSError."""

    def request(self, paths: Sequence[Path]) -> None:
        """Requests a sync of these files. The result is reported on the event loop."""

    def stop(self) -> None:
        """Stops syncing, and discards the result of a pending request."""


NewFlushing: TypeAlias = Callable[[Callable[[int], None], Callable[[str | None], None], Callable[[], None]], Flushing]
"""A function that creates a Flushing. It takes the arguments of `Flusher`."""


class Flusher:
    """Runs one flush at a time.

    If the process ends during a flush, the request is sent to the next process. Syncing a file twice is harmless.
    """

    def __init__(
        self, on_answer: Callable[[int], None], on_unavailable: Callable[[str | None], None], make_room: Callable[[], None]
    ) -> None:
        """Stores the callbacks. `on_answer` is called with 0 or an errno after each flush.

        `on_unavailable` is called with a reason when no process can be started, and with None when a process runs again.
        `make_room` closes file descriptors if none is left for a new process.
        """
        self._on_answer = on_answer
        self._on_unavailable = on_unavailable
        self._make_room = make_room
        self._process: FlushProcess | None = None
        self._asked: Sequence[Path] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._is_unavailable = False
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Starts the process. Raises OSError."""
        self._loop = asyncio.get_running_loop()
        self._start_process()

    @property
    def pid(self) -> int | None:
        """Returns the process id, or None if no process runs."""
        return self._process.pid if self._process is not None else None

    def request(self, paths: Sequence[Path]) -> None:
        """Requests a sync of these files. If no process runs, the request waits for the next process."""
        self._asked = paths
        if self._process is None:
            return
        try:
            self._process.request(paths)
        except OSError:
            self._replace()

    def stop(self) -> None:
        """Stops the process, and discards the result of a pending request."""
        self._asked = None
        if self._retry is not None:
            self._retry.cancel()
        self._close_process()

    def _on_readable(self) -> None:
        assert self._process is not None
        try:
            error = self._process.answer()
        except OSError:
            self._replace()
            return
        if self._asked is not None:
            self._asked = None
            self._on_answer(error)

    def _replace(self) -> None:
        logger.error("the flush process has ended; starting another one")
        self._close_process()
        self._try_again()

    def _try_again(self) -> None:
        self._retry = None
        try:
            self._start_process()
        except OSError as error:
            self._retry = self._loop.call_later(_AGAIN_AFTER_S, self._try_again)
            if not self._is_unavailable:
                self._is_unavailable = True
                reason = f"no flush process can be started: {error.strerror or error}"
                logger.error("%s; messages are refused. Retrying every %g s", reason, _AGAIN_AFTER_S)
                self._on_unavailable(reason)
            return
        if self._is_unavailable:
            self._is_unavailable = False
            logger.warning("the flush process is running again")
            self._on_unavailable(None)
        if self._asked is not None:
            self.request(self._asked)

    def _start_process(self) -> None:
        try:
            self._process = FlushProcess()
        except OSError:
            self._make_room()
            self._process = FlushProcess()
        self._loop.add_reader(self._process.fileno(), self._on_readable)

    def _close_process(self) -> None:
        if self._process is not None:
            self._loop.remove_reader(self._process.fileno())
            self._process.close()
            self._process = None
