"""One connection, from either end: frames in and out, requests to the handler, answers to those who wait (Netty's part)."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, cast

from broker.acl import SessionCredentials
from broker.message import record
from broker.protocol.codes import SerializeType
from broker.protocol.command import RESPONSE_FLAG, RemotingCommand, encode_request
from broker.protocol.command_header import CommandHeader
from broker.protocol.errors import FrameError, OtherProtocol
from broker.protocol.frame import FrameDecoder
from broker.protocol.pending import PendingRequests, TooManyPending
from broker.remoting.complaints import Complaints
from broker.remoting.errors import ConnectionClosed, RemotingTimeout, TooManyRequests
from broker.remoting.limits import ConnectionLimits
from broker.remoting.memory_budget import NOT_COUNTED_BYTES, MemoryBudget
from broker.remoting.signed_header import signed
from broker.remoting.turn import Turn

logger = logging.getLogger(__name__)


class RequestHandler(Protocol):
    """Who answers what peers ask. All of it is called on the event loop and must not block."""

    def on_connected(self, connection: Connection) -> None:
        """The connection is ready for use."""

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        """All requests that one read brought, in order, one-way ones included; those that `postpone` got come again."""

    def on_disconnected(self, connection: Connection) -> None:
        """The connection is gone; what is sent from now on is dropped."""


class Connection(asyncio.Protocol):
    """One TCP connection. Use it on the event loop's thread only."""

    def __init__(
        self,
        handler: RequestHandler,
        *,
        open_connections: set[Connection] | None = None,
        limits: ConnectionLimits | None = None,
        complaints: Complaints | None = None,
        serialize_type: SerializeType = SerializeType.JSON,
        credentials: SessionCredentials | None = None,
        turn: Turn | None = None,
        memory: MemoryBudget | None = None,
        most_connections: int | None = None,
    ) -> None:
        """While it is open it is in `open_connections`. `serialize_type` and `credentials` are for requests of our own.

        `turn` and `memory` are those that it shares with others; without them it has its own memory and handles all it reads.
        If `most_connections` are open already, it is closed at once.
        """
        self.peer = "?"
        """The other end: "127.0.0.1:5555"."""
        self.peer_ip = "?"
        """The other end's IP address alone."""
        self.born_host = bytes(8)
        """The other end as records hold it: 8 bytes, 20 with IPv6."""
        self._handler = handler
        self._open_connections = open_connections if open_connections is not None else set()
        self._limits = limits or ConnectionLimits()
        self._complaints = complaints or Complaints()
        self._refusal: FrameError | None = None
        self._serialize_type = serialize_type
        self._credentials = credentials
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._decoder = FrameDecoder(self._limits.max_frame_length, self._limits.max_header_length)
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._is_writable = True
        self._pending: PendingRequests[asyncio.Future[RemotingCommand]] = PendingRequests()
        self._expiry: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._give_up: asyncio.TimerHandle | None = None
        self._last_moved_s = 0.0
        self._frame_began_s = 0.0
        self._turn = turn
        self._memory = memory or MemoryBudget()
        self._most_connections = most_connections
        self._postponed: list[RemotingCommand] | None = None
        self._postponed_bytes = 0
        self._is_lost = False
        self._closed: asyncio.Future[None] = self._loop.create_future()

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_writable(self) -> bool:
        """Whether the peer keeps up with what it is sent. Ask before sending what it did not ask for."""
        return self._is_writable and self.is_open

    @property
    def must_rest(self) -> bool:
        """Whether whoever handles its requests should leave off, and give the rest to `postpone`."""
        return not self._is_writable or (self._turn is not None and self._turn.is_over())

    def postpone(self, requests: list[RemotingCommand]) -> None:
        """Hands these requests to the handler again in a later turn of the event loop; until then nothing more is read."""
        self._postponed = requests
        self._postponed_bytes = sum(len(request.body) for request in requests)
        self._note_memory()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        if self._is_writable:
            self._go_on_later()

    @property
    def held_bytes(self) -> int:
        """What the connection holds in memory: input without a whole frame, requests postponed, output."""
        written = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return self._decoder.buffered_length + self._postponed_bytes + self._unsent_bytes + written

    def give_up(self, total_bytes: int) -> None:
        """Ends it: it holds most of what all connections hold."""
        held_bytes = self.held_bytes
        if self._complaints.is_due(self.peer.rpartition(":")[0], "memory", self._loop.time()):
            logger.warning(
                "closing the connection of %s, which holds %d bytes, the most of all: together they hold %d, more than they may",
                self.peer,
                held_bytes,
                total_bytes,
            )
        if self._transport is not None:
            self._transport.abort()

    def send(self, frame: bytes) -> None:
        """Sends a whole frame; all frames of one loop iteration leave in one write. On a closed connection it is dropped."""
        if not self._unsent:
            self._loop.call_soon(self._write_unsent)
        self._unsent.append(frame)
        self._unsent_bytes += len(frame)
        if self._unsent_bytes > self._limits.high_water_bytes:
            # A burst of answers must not fill the memory before anybody looks at how much the peer has taken.
            self._write_unsent()

    def send_at_once(self, frames: list[bytes]) -> None:
        """Sends whole frames, after those sent before, without waiting for what this loop iteration may bring yet."""
        self._unsent += frames
        self._write_unsent()

    async def invoke(
        self, code: int, header: CommandHeader | None = None, body: bytes = b"", *, timeout_ms: int
    ) -> RemotingCommand:
        """Sends a request and waits for its answer.

        Raises RemotingTimeout, ConnectionClosed or TooManyRequests.
        """
        return await self.start_invoke(code, header, body, timeout_ms=timeout_ms)

    def start_invoke(
        self, code: int, header: CommandHeader | None = None, body: bytes = b"", *, timeout_ms: int
    ) -> asyncio.Future[RemotingCommand]:
        """Sends a request; the future gets its answer, RemotingTimeout or ConnectionClosed. Raises like `invoke`."""
        if not self.is_open:
            raise ConnectionClosed(f"the connection to {self.peer} is closed")
        answer: asyncio.Future[RemotingCommand] = self._loop.create_future()
        deadline_ms = self._now_ms() + timeout_ms
        try:
            opaque = self._pending.add(answer, deadline_ms)
        except TooManyPending as error:
            raise TooManyRequests(f"{self.peer}: {error}") from None
        self.send(self._request(code, header, body, opaque))
        self._expire_at(deadline_ms)
        return answer

    def invoke_oneway(self, code: int, header: CommandHeader | None = None, body: bytes = b"") -> None:
        """Sends a request that is not answered. Raises ConnectionClosed."""
        if not self.is_open:
            raise ConnectionClosed(f"the connection to {self.peer} is closed")
        opaque = self._pending.next_opaque()
        self.send(self._request(code, header, body, opaque, oneway=True))

    def close(self) -> None:
        """Closes it once everything is sent, or after the close time-out."""
        if self._transport is None or self._transport.is_closing():
            return
        self._write_unsent()
        self._transport.close()
        self._give_up = self._loop.call_later(self._limits.close_timeout_s, self._transport.abort)

    async def wait_closed(self) -> None:
        """Returns when the connection is gone."""
        await asyncio.shield(self._closed)

    def secured_by(self, transport: asyncio.Transport) -> None:
        """Uses this transport from now on: one that speaks TLS over the connection's own."""
        self._transport = transport

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected."""
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        if address is None:
            self._transport.abort()
            return
        host, port = address[:2]
        self.peer_ip = host
        self.born_host = record.host_bytes(host, port)
        self.peer = record.host_text(self.born_host)
        if self._most_connections is not None and len(self._open_connections) >= self._most_connections:
            if self._complaints.is_due("", "too many", self._loop.time()):
                logger.warning(
                    "refusing the connection of %s: %d are open, the most that may be", self.peer, self._most_connections
                )
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=self._limits.high_water_bytes)
        self._last_moved_s = self._loop.time()
        self._idle = self._loop.call_later(self._limits.idle_timeout_s, self._close_if_idle)
        self._open_connections.add(self)
        self._handler.on_connected(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._last_moved_s = self._loop.time()
        try:
            commands = self._decoder.feed(data)
        except FrameError as error:
            self._refuse(error)
            return
        requests = [command for command in commands if not command.flag & RESPONSE_FLAG]
        if len(requests) < len(commands):
            for command in commands:
                if command.is_response:
                    self._answer(command)
        if requests:
            self._handle(requests)
        if self._decoder.buffered_length > NOT_COUNTED_BYTES:
            if commands or not self._frame_began_s:
                self._frame_began_s = self._last_moved_s
            self._note_memory()
        elif self._frame_began_s:
            self._frame_began_s = 0.0
            self._note_memory()
        if self._decoder.failure is not None:
            self._refuse(self._decoder.failure)

    def eof_received(self) -> None:
        """The peer sends no more; asyncio closes the connection then."""

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        self._open_connections.discard(self)
        for timer in (self._idle, self._expiry, self._give_up):
            if timer is not None:
                timer.cancel()
        self._unsent.clear()
        self._unsent_bytes = 0
        for answer in self._pending.take_all():
            if not answer.done():
                reason = self._refusal or error or "closed"
                answer.set_exception(ConnectionClosed(f"the connection to {self.peer} ended: {reason}"))
        if not self._closed.done():
            self._closed.set_result(None)
        self._is_lost = self._is_writable = True
        if self._postponed is None:
            self._end()
        else:
            # Nobody waits for answers any more, but one-way requests count, as they would had there been time for them.
            self._postponed = [request for request in self._postponed if request.is_oneway]
            self._go_on_later()

    def pause_writing(self) -> None:
        """The peer reads too slowly: nothing more is read from it until it has caught up."""
        self._is_writable = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._is_writable = True
        self._note_memory()
        if self._postponed is not None:
            self._go_on_later()
        elif self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _request(self, code: int, header: CommandHeader | None, body: bytes, opaque: int, *, oneway: bool = False) -> bytes:
        if self._credentials is not None:
            header = signed(header, body, self._credentials)
        return encode_request(code, header, body, opaque=opaque, serialize_type=self._serialize_type, oneway=oneway)

    def _go_on_later(self) -> None:
        if self._turn is not None:
            self._turn.later(self._go_on)
        else:
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Hands postponed requests to the handler again, and reads on once there are none left."""
        requests = self._postponed
        if requests is None or not self._is_writable:
            return
        self._postponed, self._postponed_bytes = None, 0
        self._handle(requests)
        if self._postponed is None:
            self._end() if self._is_lost else self._note_memory()
            if self.is_writable:
                cast(asyncio.Transport, self._transport).resume_reading()

    def _end(self) -> None:
        """The connection is gone, and nothing that came by it is left to do."""
        self._memory.forget(self)
        self._handler.on_disconnected(self)

    def _note_memory(self) -> None:
        self._memory.note(self, self.held_bytes)

    def _handle(self, requests: list[RemotingCommand]) -> None:
        try:
            self._handler.on_requests(self, requests)
        except Exception:
            logger.exception("a request of %s was not handled", self.peer)

    def _refuse(self, error: FrameError) -> None:
        self._refusal = error
        cause = error.protocol if isinstance(error, OtherProtocol) else "no frame"
        if self._complaints.is_due(self.peer.rpartition(":")[0], cause, self._loop.time()):
            logger.warning("closing the connection of %s: %s", self.peer, error)
        self.close()

    def _answer(self, command: RemotingCommand) -> None:
        answer = self._pending.take(command.opaque)
        if answer is None:
            logger.debug("an answer from %s that nobody waits for (any longer): opaque %d", self.peer, command.opaque)
        elif not answer.done():
            answer.set_result(command)

    def _write_unsent(self) -> None:
        if self._transport is None or not self._unsent:
            return
        data = b"".join(self._unsent) if len(self._unsent) > 1 else self._unsent[0]
        self._unsent.clear()
        self._unsent_bytes = 0
        if self._transport.is_closing():
            return
        if self._is_writable:
            self._last_moved_s = self._loop.time()
        self._transport.write(data)
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes > self._limits.max_unsent_bytes:
            logger.warning("closing the connection of %s: it does not read what it is sent", self.peer)
            self._transport.abort()
        elif unsent_bytes > NOT_COUNTED_BYTES:
            self._note_memory()

    def _close_if_idle(self) -> None:
        now_s = self._loop.time()
        left_s = self._last_moved_s + self._limits.idle_timeout_s - now_s
        if self._frame_began_s and now_s - self._frame_began_s > self._limits.frame_timeout_s:
            logger.warning(
                "closing the connection of %s: after %.0f s a frame is not whole", self.peer, now_s - self._frame_began_s
            )
            self.close()
            return
        if left_s > 0:
            self._idle = self._loop.call_later(left_s, self._close_if_idle)
            return
        logger.info("closing the connection of %s: nothing moved on it for %.0f s", self.peer, self._limits.idle_timeout_s)
        self.close()

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _expire_at(self, deadline_ms: int) -> None:
        """Makes sure that the expiry timer fires no later than this."""
        when_s = (deadline_ms + 1) / 1000
        if self._expiry is not None:
            if self._expiry.when() <= when_s:
                return
            self._expiry.cancel()
        self._expiry = self._loop.call_at(when_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        for answer in self._pending.take_expired(self._now_ms()):
            if not answer.done():
                answer.set_exception(RemotingTimeout(f"no answer from {self.peer} in time"))
        earliest_ms = self._pending.earliest_deadline_ms()
        if earliest_ms is not None:
            self._expire_at(earliest_ms)
