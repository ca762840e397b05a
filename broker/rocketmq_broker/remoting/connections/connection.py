"""A connection of a client or a server.

It passes received requests to a handler, and received responses to the callers that wait for them.
"""

import asyncio
import logging
from typing import Protocol, cast

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.message import record
from rocketmq_broker.protocol.codes import SerializeType
from rocketmq_broker.protocol.command import RESPONSE_FLAG, RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.errors import FrameError, OtherProtocol
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.connections.memory_budget import NOT_COUNTED_BYTES, MemoryBudget
from rocketmq_broker.remoting.connections.own_requests import OwnRequests
from rocketmq_broker.remoting.connections.sending_half import SendingHalf
from rocketmq_broker.remoting.connections.turn import Turn
from rocketmq_broker.remoting.errors import ConnectionClosed
from rocketmq_broker.remoting.limits import ConnectionLimits
from rocketmq_broker.remoting.rpc_hook import HookedRequests, RpcHook

logger = logging.getLogger(__name__)


class RequestHandler(Protocol):
    """Handles the requests of a connection. Its methods are called on the event loop and must not block."""

    def on_connected(self, connection: "Connection") -> None:
        """Called when the connection is ready for use."""

    def on_requests(self, connection: "Connection", requests: list[RemotingCommand]) -> None:
        """Handles all requests of one read, in order, including one-way requests. Postponed requests are passed again."""

    def on_disconnected(self, connection: "Connection") -> None:
        """Called when the connection has ended. Later sends are ignored."""


class Connection(SendingHalf):
    """One TCP connection. Use it only in the event loop's thread.

    The connection passes requests to the handler, and responses to the callers that wait for them. The handler may postpone
    requests. The connection stops reading while requests are postponed, and while the peer does not read the connection's output.
    """

    def __init__(
        self,
        handler: RequestHandler,
        *,
        open_connections: "set[Connection] | None" = None,
        limits: ConnectionLimits | None = None,
        complaints: Complaints | None = None,
        serialize_type: SerializeType = SerializeType.JSON,
        credentials: SessionCredentials | None = None,
        rpc_hook: RpcHook | None = None,
        turn: Turn | None = None,
        memory: MemoryBudget | None = None,
        max_connections: int | None = None,
    ) -> None:
        """Creates a connection. `serialize_type`, `credentials` and `rpc_hook` apply to requests sent by this end.

        `open_connections` is the set of open connections. `turn` and `memory` are shared with other connections. By default,
        the connection has its own memory budget and no limit on a turn. If `max_connections` are open, the connection is closed.
        """
        super().__init__(limits or ConnectionLimits())
        self.peer_ip = "?"
        """The peer's IP address without the port."""
        self.born_host = bytes(8)
        """The peer's address encoded as in records: 8 bytes, or 20 for IPv6."""
        self._handler = handler
        self._open_connections = open_connections if open_connections is not None else set()
        self._complaints = complaints or Complaints()
        self._refusal: FrameError | None = None
        self._decoder = FrameDecoder(self._limits.max_frame_length, self._limits.max_header_length)
        self._own_requests = (
            OwnRequests(self._loop, serialize_type, credentials)
            if rpc_hook is None
            else HookedRequests(self._loop, serialize_type, credentials, rpc_hook)
        )
        self._turn = turn
        self._memory = memory or MemoryBudget()
        self._max_connections = max_connections
        self._postponed: list[RemotingCommand] | None = None
        self._postponed_bytes = 0
        self._is_lost = False

    @property
    def must_rest(self) -> bool:
        """Returns True if the handler must stop now and pass the remaining requests to `postpone`."""
        return not self._is_writable or (self._turn is not None and self._turn.is_over())

    def postpone(self, requests: list[RemotingCommand]) -> None:
        """Passes these requests to the handler again in a later turn of the event loop.

        The connection does not read until then.
        """
        self._postponed = requests
        self._postponed_bytes = sum(len(request.body) for request in requests)
        self._note_memory()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        if self._is_writable:
            self._go_on_later()

    @property
    def held_bytes(self) -> int:
        """Returns the number of bytes that incomplete frames, postponed requests and unsent output occupy in memory."""
        return self._decoder.buffered_length + self._postponed_bytes + self.unsent_bytes

    def give_up(self, total_bytes: int) -> None:
        """Closes the connection at once, because it uses the most memory of all connections."""
        held_bytes = self.held_bytes
        if self._complaints.is_due(self.peer.rpartition(":")[0], "memory", self._loop.time()):
            logger.warning(
                "closing the connection of %s: connections use too much memory, and this one uses the most: %d of %d bytes",
                self.peer,
                held_bytes,
                total_bytes,
            )
        if self._transport is not None:
            self._transport.abort()

    async def invoke(
        self, code: int, header: CommandHeader | None = None, body: bytes = b"", *, timeout_ms: int
    ) -> RemotingCommand:
        """Sends a request, and returns the response.

        Raises RemotingTimeout, ConnectionClosed, TooManyRequests or StoppedByHook.
        """
        return await self.start_invoke(code, header, body, timeout_ms=timeout_ms)

    def start_invoke(
        self, code: int, header: CommandHeader | None = None, body: bytes = b"", *, timeout_ms: int
    ) -> asyncio.Future[RemotingCommand]:
        """Sends a request. Returns a future with the response, or with RemotingTimeout or ConnectionClosed.

        Raises ConnectionClosed, TooManyRequests or StoppedByHook.
        """
        if not self.is_open:
            raise ConnectionClosed(f"the connection to {self.peer} is closed")
        frame, answer = self._own_requests.new(code, header, body, timeout_ms)
        self.send(frame)
        return answer

    def invoke_oneway(
        self, code: int, header: CommandHeader | None = None, body: bytes = b"", *, remark: str | None = None
    ) -> None:
        """Sends a one-way request. Raises ConnectionClosed."""
        if not self.is_open:
            raise ConnectionClosed(f"the connection to {self.peer} is closed")
        self.send(self._own_requests.new_oneway(code, header, body, remark))

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts the connection on a connected socket."""
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        if address is None:
            self._transport.abort()
            return
        host, port = address[:2]
        self.peer_ip = host
        self.born_host = record.host_bytes(host, port)
        self.peer = self._own_requests.peer = record.host_text(self.born_host)
        if self._max_connections is not None and len(self._open_connections) >= self._max_connections:
            if self._complaints.is_due("", "too many", self._loop.time()):
                logger.warning(
                    "refusing the connection of %s: too many open connections, at most %d", self.peer, self._max_connections
                )
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=self._limits.high_water_bytes)
        self._idle_watch.start(self.peer, self.close)
        self._open_connections.add(self)
        self._handler.on_connected(self)

    def data_received(self, data: bytes) -> None:
        """Decodes the bytes, and handles requests and responses."""
        watch = self._idle_watch
        watch.moved_s = self._loop.time()
        try:
            commands = self._decoder.feed(data)
        except FrameError as error:
            self._refuse(error)
            return
        requests = [command for command in commands if not command.flag & RESPONSE_FLAG]
        if len(requests) < len(commands):
            for command in commands:
                if command.is_response:
                    self._own_requests.answered(command)
        if requests:
            self._handle(requests)
        if self._decoder.buffered_length > NOT_COUNTED_BYTES:
            if commands or not watch.frame_began_s:
                watch.frame_began_s = watch.moved_s
            self._note_memory()
        elif watch.frame_began_s:
            watch.frame_began_s = 0.0
            self._note_memory()
        if self._decoder.failure is not None:
            self._refuse(self._decoder.failure)

    def eof_received(self) -> None:
        """Returns None, so that asyncio closes the connection when the peer has closed its output."""

    def connection_lost(self, error: Exception | None) -> None:
        """Releases all resources after the socket is closed."""
        self._open_connections.discard(self)
        self._idle_watch.stop()
        if self._give_up is not None:
            self._give_up.cancel()
        self._drop_unsent()
        # Free the data now instead of in the garbage collector: no reference cycle may contain the connection.
        self._decoder.drop()
        self._transport = None
        self._own_requests.ended(self._refusal or error or "closed")
        self._refusal = None
        if not self._closed.done():
            self._closed.set_result(None)
        self._is_lost = self._is_writable = True
        if self._postponed is None:
            self._end()
        else:
            # Answers can no longer be sent, but postponed one-way requests are still handled.
            self._postponed = [request for request in self._postponed if request.is_oneway]
            self._go_on_later()

    def pause_writing(self) -> None:
        """Stops reading until the peer has read the output."""
        self._is_writable = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Handles postponed requests, or starts reading again, after the peer has read the output."""
        self._is_writable = True
        self._note_memory()
        if self._postponed is not None:
            self._go_on_later()
        elif self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _go_on_later(self) -> None:
        if self._turn is not None:
            self._turn.later(self._go_on)
        else:
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Passes postponed requests to the handler again, and starts reading again if none remain."""
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
        """Notifies the handler of the connection's end, after all its requests are handled."""
        self._memory.forget(self)
        self._handler.on_disconnected(self)

    def _note_memory(self) -> None:
        self._memory.note(self, self.held_bytes)

    def _handle(self, requests: list[RemotingCommand]) -> None:
        try:
            self._handler.on_requests(self, requests)
        except Exception:
            logger.exception("a request from %s could not be handled", self.peer)

    def _refuse(self, error: FrameError) -> None:
        self._refusal = error.with_traceback(None)  # the traceback would keep a reference to this connection
        cause = error.protocol if isinstance(error, OtherProtocol) else "no frame"
        if self._complaints.is_due(self.peer.rpartition(":")[0], cause, self._loop.time()):
            logger.warning("closing the connection of %s: %s", self.peer, error)
        self.close()
