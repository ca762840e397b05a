"""The output of a connection. It collects frames and joins them for one write."""

import asyncio
import logging

from rocketmq_broker.remoting.connections.idle_watch import IdleWatch
from rocketmq_broker.remoting.connections.memory_budget import NOT_COUNTED_BYTES
from rocketmq_broker.remoting.limits import ConnectionLimits

logger = logging.getLogger(__name__)


class SendingHalf(asyncio.Protocol):
    """The output of one TCP connection. Use it only in the event loop's thread."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.peer = "?"
        """The peer's address, such as "127.0.0.1:5555"."""
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._idle_watch = IdleWatch(self._loop, limits)
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._is_writable = True
        self._give_up: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()

    @property
    def is_open(self) -> bool:
        """Returns True if frames can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_writable(self) -> bool:
        """Returns True if the peer reads the output fast enough. Check it before sending anything except a response."""
        return self._is_writable and self.is_open

    @property
    def unsent_bytes(self) -> int:
        """Returns the number of bytes that have not been sent."""
        return self._unsent_bytes + (self._transport.get_write_buffer_size() if self._transport is not None else 0)

    def send(self, frame: bytes) -> None:
        """Sends a frame. All frames of one loop iteration are sent in one write. Does nothing on a closed connection."""
        if not self._unsent:
            self._loop.call_soon(self._write_unsent)
        self._unsent.append(frame)
        self._unsent_bytes += len(frame)
        if self._unsent_bytes > self._limits.high_water_bytes:
            # A burst of answers must not fill the memory before the transport's buffer is checked.
            self._write_unsent()

    def send_at_once(self, frames: list[bytes]) -> None:
        """Sends frames immediately, after any frames that are still buffered."""
        self._unsent += frames
        self._write_unsent()

    def close(self) -> None:
        """Closes the connection when all data is sent, or after the close timeout."""
        if self._transport is None or self._transport.is_closing():
            return
        self._write_unsent()
        self._transport.close()
        self._give_up = self._loop.call_later(self._limits.close_timeout_s, self._transport.abort)

    def secured_by(self, transport: asyncio.Transport) -> None:
        """Replaces the transport with a transport that uses TLS."""
        self._transport = transport

    async def wait_closed(self) -> None:
        """Waits until the connection has ended."""
        await asyncio.shield(self._closed)

    def _note_memory(self) -> None:
        """Called when the number of bytes that the connection holds in memory has changed."""

    def _write_unsent(self) -> None:
        if not self._unsent or (self._transport is None and not self._closed.done()):
            return
        data = b"".join(self._unsent) if len(self._unsent) > 1 else self._unsent[0]
        self._drop_unsent()
        if self._transport is None or self._transport.is_closing():
            return
        if self._is_writable:
            self._idle_watch.moved_s = self._loop.time()
        self._transport.write(data)
        buffered_bytes = self._transport.get_write_buffer_size()
        if buffered_bytes > self._limits.max_unsent_bytes:
            logger.warning("closing the connection of %s: the peer does not read the data sent to it", self.peer)
            self._transport.abort()
        elif buffered_bytes > NOT_COUNTED_BYTES:
            self._note_memory()

    def _drop_unsent(self) -> None:
        self._unsent.clear()
        self._unsent_bytes = 0
