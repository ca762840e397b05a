"""Accepts connections, and reserves some file descriptors for the rest of the program.

If no descriptor is free, asyncio's server logs thousands of tracebacks per second and schedules as many new attempts. This
listener instead pauses for a second, and logs an error at most once a minute.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

from rocketmq_broker.platform.limits import max_open_files
from rocketmq_broker.remoting.complaints import Complaints

logger = logging.getLogger(__name__)

RESERVED: Final = 64
"""The number of file descriptors reserved for the program's own files, pipes and connections.

If the limit on file descriptors is very low, a quarter of them is reserved instead.
"""
_REST_S: Final = 1.0
_ACCEPTED_AT_ONCE: Final = 64
_OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """A listener on bound sockets. It accepts connections between `start` and `stop`."""

    def __init__(self, sockets: Sequence[socket.socket], new_protocol: Callable[[], asyncio.Protocol], backlog: int) -> None:
        """Creates a listener on these bound sockets. `stop` closes the sockets."""
        self._sockets = list(sockets)
        self._new_protocol = new_protocol
        self._backlog = backlog
        self._loop = asyncio.get_running_loop()
        self._resting: dict[socket.socket, asyncio.TimerHandle] = {}
        self._accepting: dict[socket.socket, asyncio.Task[None]] = {}
        """The tasks that accept connections where the event loop has no readers."""
        self._connecting: set[asyncio.Task[object]] = set()
        self._complaints = Complaints()

    @property
    def port(self) -> int:
        """Returns the port. Call it before `stop`."""
        return int(self._sockets[0].getsockname()[1])

    def start(self) -> None:
        """Starts listening. Raises OSError if an address cannot be used."""
        for sock in self._sockets:
            sock.listen(self._backlog)
            self._watch(sock)

    def stop(self) -> None:
        """Stops listening. Accepted connections stay open."""
        while self._sockets:
            sock = self._sockets.pop()
            if (rest := self._resting.pop(sock, None)) is not None:
                rest.cancel()
            else:
                self._unwatch(sock)
            sock.close()

    def _watch(self, sock: socket.socket) -> None:
        try:
            self._loop.add_reader(sock, self._accept, sock)
        except NotImplementedError:  # the ProactorEventLoop of Windows does not report readable sockets
            self._accepting[sock] = self._loop.create_task(self._accept_one_by_one(sock))

    def _unwatch(self, sock: socket.socket) -> None:
        if (accepting := self._accepting.pop(sock, None)) is not None:
            accepting.cancel()
            return
        with contextlib.suppress(NotImplementedError):  # a listener that was not started has no task, either
            self._loop.remove_reader(sock)

    async def _accept_one_by_one(self, sock: socket.socket) -> None:
        while True:
            try:
                taken, _ = await self._loop.sock_accept(sock)
            except (ConnectionAbortedError, ConnectionResetError):
                continue
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._rest(sock, error.strerror)
                return
            self._connect(taken)

    def _accept(self, sock: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                taken, _ = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    raise
                self._rest(sock, error.strerror)
                return
            if taken.fileno() >= _max_descriptors():
                taken.close()
                self._rest(sock, "too many open files")
                return
            self._connect(taken)

    def _connect(self, taken: socket.socket) -> None:
        taken.setblocking(False)
        task: asyncio.Task[object] = self._loop.create_task(self._loop.connect_accepted_socket(self._new_protocol, taken))
        self._connecting.add(task)
        task.add_done_callback(self._connected)

    def _connected(self, task: asyncio.Task[object]) -> None:
        self._connecting.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a connection could not be accepted", exc_info=error)

    def _rest(self, sock: socket.socket, reason: str | None) -> None:
        self._unwatch(sock)
        self._resting[sock] = self._loop.call_later(_REST_S, self._go_on, sock)
        host, port = sock.getsockname()[:2]
        if self._complaints.is_due(host, "resources", self._loop.time()):
            logger.error(
                "no more connections can be accepted at %s:%d: %s; the limit is %d (ulimit -n); retrying every %g s",
                host, port, reason, max_open_files(), _REST_S,
            )  # fmt: skip

    def _go_on(self, sock: socket.socket) -> None:
        del self._resting[sock]
        self._watch(sock)


def _max_descriptors() -> int:
    limit = max_open_files()
    return limit - min(RESERVED, limit // 4)
