"""A client's HTTP/2 connection, using the library h2. The library receives only complete frames that are within the limits.

h2 uses neither sockets nor a clock. This module adds flow control that depends on the memory in use, protection against floods
of useless frames (CVE-2023-44487, CVE-2019-9512 to 9518), and time limits for incomplete requests and unread responses.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, RemoteSettingsChanged, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack import HeaderTuple, NeverIndexedHeaderTuple
from hyperframe.frame import GoAwayFrame

from rocketmq_broker.message import record
from rocketmq_broker.proxy.connections import frames
from rocketmq_broker.proxy.connections.call import Call, CallEnded, GrpcStatus, Method, message_header, metadata_of
from rocketmq_broker.proxy.connections.frames import Frame, FrameBudget, FrameRefused, FrameSplitter
from rocketmq_broker.remoting.connections.memory_budget import NOT_COUNTED_BYTES, MemoryBudget
from rocketmq_broker.remoting.connections.turn import Turn

logger = logging.getLogger(__name__)

MAX_CALLS: Final = 1000
"""The maximum number of calls in progress on a connection.

A client has one call for each topic that it polls, and one for each send.
"""
MAX_HEADER_LIST_BYTES: Final = 16 * 1024
"""The maximum uncompressed size of a call's metadata in bytes, as in gRPC's own server."""
MAX_CLOSED_STREAMS: Final = 1000
"""The number of closed streams that h2 remembers, so that late frames for them are not errors."""
BEGINS_WITHIN_S: Final = 10.0
REQUEST_WITHIN_S: Final = 60.0
TAKEN_WITHIN_S: Final = 60.0
"""The time in seconds within which a client must read some of its answers."""
_IDLE_S: Final = 120.0
_CLOSES_WITHIN_S: Final = 3.0
_STREAM_WINDOW_BYTES: Final = 1024 * 1024
_CONNECTION_WINDOW_BYTES: Final = 8 * 1024 * 1024
_FIRST_WINDOW_BYTES: Final = 65_535
_WRITTEN_AT_ONCE_BYTES: Final = 64 * 1024
_FRAMES_AT_ONCE: Final = 16
_NO_USE_BELOW_BYTES: Final = 1024
_SMALL_FRAMES_OF_CALL: Final = 8
_COST_OF_RESET: Final = 3
_EARNED_BY_CALL: Final = 5
_EARNED_PER_BYTES: Final = 4096
_MAX_UNREAD_BYTES: Final = 1024 * 1024


class ConnectionOwner(Protocol):
    """The server that owns the connections."""

    memory: MemoryBudget
    turn: Turn

    def method(self, path: bytes) -> Method | None:
        """Returns the method at that path, or None if there is none."""

    def run(self, call: Call) -> asyncio.Task[None]:
        """Starts the task that handles the call."""

    def admit(self, connection: "Http2Connection") -> bool:
        """Adds the connection. Returns False if the maximum number of connections is reached."""

    def ended(self, connection: "Http2Connection") -> None:
        """Removes a closed connection."""

    def complain(self, peer: str, cause: str, reason: str) -> None:
        """Logs why a connection is closed."""


class _Http2(H2Connection):
    MAX_CLOSED_STREAMS = MAX_CLOSED_STREAMS


class Http2Connection(asyncio.Protocol):
    """A client's connection. The server does not read from it while the client has unread responses."""

    def __init__(self, port: ConnectionOwner) -> None:
        self.peer = "?"
        self.address = ("", 0)
        self.calls: dict[int, Call] = {}
        """The calls in progress, by stream id."""
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._splitter = FrameSplitter()
        self._budget = FrameBudget(self._loop.time())
        self._h2 = _new_h2()
        self._held_bytes = 0
        self._unread_bytes = 0
        """The number of unread bytes of unary answers. Above a limit, no further unary call begins."""
        self._delayed: deque[Call] = deque()
        self._is_flush_due = self._is_wake_due = False
        self._is_resting = self._is_leaving = self._is_closing = self._has_settings = False
        self._is_writable = True
        self._waiting: dict[Call, asyncio.Future[None]] = {}
        self._moved_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    @property
    def held_bytes(self) -> int:
        """Returns the number of bytes held in memory by incomplete frames, calls, their responses, and unsent output."""
        unsent = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return self._splitter.held_bytes + self._held_bytes + unsent

    def give_up(self, total_bytes: int) -> None:
        """Closes this connection immediately, because it uses more memory than any other.

        `total_bytes` is the memory used by all connections together, which exceeds the budget.
        """
        self._port.complain(
            self.peer,
            "memory",
            f"it holds {self.held_bytes} bytes, more than any other, and all connections hold {total_bytes}, above the limit",
        )
        self.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts the time limit for the first bytes."""
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        if address is None or not self._port.admit(self):
            self._transport.abort()
            return
        self.address = address[:2]
        self.peer = record.host_text(record.host_bytes(*self.address))
        self._timer = self._loop.call_later(BEGINS_WITHIN_S, self._is_late)

    def secured_by(self, transport: asyncio.Transport) -> None:
        """Replaces the transport with a transport that adds TLS."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Splits the bytes into frames, and handles some of them in each turn of the event loop."""
        if self._is_closing:
            return
        self._moved_s = self._loop.time()
        try:
            self._splitter.feed(data)
        except FrameRefused:
            reason = "it does not use gRPC, but this is grpcServerPort; RocketMQ 4 clients use the name server or listenPort"
            self._port.complain(self.peer, "not HTTP/2", reason)
            self.abort()
            return
        if not self._is_resting:
            self._continue()

    def eof_received(self) -> bool | None:
        """Lets asyncio close the connection."""
        return None

    def connection_lost(self, error: Exception | None) -> None:
        """Ends all calls and frees the connection's memory."""
        self._is_closing, self._transport = True, None
        for timer in (self._timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        for call in list(self.calls.values()):
            self._forget(call)
        self._splitter.drop()
        self._port.memory.forget(self)
        self._port.ended(self)

    def pause_writing(self) -> None:
        """Stops reading and writing until the client has read its responses, and starts the time limit for the client."""
        self._is_writable = False
        self._unread_timer = self._loop.call_later(TAKEN_WITHIN_S, self._is_unread)
        self._pause_reading()

    def resume_writing(self) -> None:
        """Resumes reading and writing."""
        self._is_writable = True
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        self._wake_later()
        self._note_memory()
        if not self._is_resting:
            self._continue()

    def abort(self) -> None:
        """Closes the connection immediately."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def leave(self) -> None:
        """Refuses new calls, and closes the connection after the last call has ended."""
        if self._is_leaving or self._transport is None:
            return
        self._is_leaving = True
        self._flush()
        self._transport.write(GoAwayFrame(0, last_stream_id=self._h2.highest_inbound_stream_id).serialize())
        self._close_if_left()

    def look(self, now_s: float) -> None:
        """Ends calls whose requests are late, and closes an idle connection. Call this method every few seconds."""
        for call in list(self.calls.values()):
            if not call.has_client_ended and not call.method.is_telemetry and now_s - call.began_s > REQUEST_WITHIN_S:
                self.finish(call, GrpcStatus.DEADLINE_EXCEEDED, f"the request is incomplete after {REQUEST_WITHIN_S:.0f} s")
        if now_s - self._moved_s > _IDLE_S:
            logger.info("closing the connection of %s: it was idle for %.0f s", self.peer, _IDLE_S)
            self.leave()
            self.close()

    # Frames

    def _continue(self) -> None:
        """Handles some received frames. The rest are handled in later turns, so that no client blocks the event loop."""
        self._is_resting = False
        if self._is_closing or not self._is_writable:
            return
        try:
            for _ in range(_FRAMES_AT_ONCE):
                if self._port.turn.is_over():
                    self._rest(self._port.turn.later)
                    break
                frame = self._splitter.next()
                if frame is None:
                    self._resume_reading()
                    break
                self._handle(frame)
            else:
                self._rest(self._loop.call_soon)  # callbacks that are due run first
        except FrameRefused as refusal:
            self._refuse(str(refusal), ErrorCodes.ENHANCE_YOUR_CALM)
        except ProtocolError as error:
            self._refuse(f"it violates HTTP/2: {str(error)[:200]}", None)
        except Exception:
            logger.exception("closing the connection of %s: its data could not be handled", self.peer)
            self.abort()
        if self._splitter.held_bytes > NOT_COUNTED_BYTES:
            self._note_memory()

    def _rest(self, later: Callable[[Callable[[], None]], object]) -> None:
        self._is_resting = True
        self._pause_reading()
        later(self._continue)

    def _handle(self, frame: Frame) -> None:
        call = self.calls.get(frame.stream_id)
        self._charge(frame, call)
        if frame.type == frames.GOAWAY:
            # After a GOAWAY h2 would send nothing, but the client still waits for its answers.
            self._is_leaving = True
            self._close_if_left()
            return
        for event in self._h2.receive_data(frame.data):
            handle = _HANDLERS.get(type(event))
            if handle is not None:
                handle(self, event)
        self._flush_later()

    def _charge(self, frame: Frame, call: Call | None) -> None:
        """Charges the client for a useless frame. Raises FrameRefused if the client has sent too many such frames."""
        if frame.type == frames.HEADERS:
            return
        if frame.type == frames.DATA:
            if frame.payload_bytes >= _NO_USE_BELOW_BYTES:
                return
            if call is not None:
                call.small_frames += 1
                if call.small_frames <= _SMALL_FRAMES_OF_CALL:
                    return
        cost = _COST_OF_RESET if frame.type == frames.RST_STREAM and call is not None else 1
        self._budget.spend(cost, self._loop.time())

    def _requested(self, event: RequestReceived) -> None:
        headers = cast("Iterable[tuple[bytes, bytes]]", event.headers or ())
        stream_id = event.stream_id
        if self._is_leaving:
            self._h2.reset_stream(stream_id, ErrorCodes.REFUSED_STREAM)
            return
        metadata = metadata_of(headers)
        is_grpc = metadata.get("content-type", "").startswith("application/grpc")
        if metadata.get(":method") != "POST" or not is_grpc:
            self._h2.send_headers(stream_id, [(":status", "415"), ("accept", "application/grpc")], end_stream=True)
            self._h2.reset_stream(stream_id, ErrorCodes.NO_ERROR)
            return
        method = self._port.method(metadata.get(":path", "").encode())
        try:
            if method is None:
                raise CallEnded(GrpcStatus.UNIMPLEMENTED, f"unknown method {metadata.get(':path', '')[:200]}")
            call = Call(self, stream_id, method, metadata, self.address, self._loop.time())
        except CallEnded as end:
            self._budget.spend(1, self._loop.time())
            self._h2.send_headers(stream_id, _ending(end.status, end.message, is_answered=False), end_stream=True)
            if event.stream_ended is None:
                self._h2.reset_stream(stream_id, ErrorCodes.NO_ERROR)
            return
        self.calls[stream_id] = call
        if call.deadline_s is not None:
            call.timer = self._loop.call_at(call.deadline_s, self._deadline, call)
        if method.is_telemetry:
            self._begin(call)

    def _data_came(self, event: DataReceived) -> None:
        stream_id, flow_bytes = event.stream_id, event.flow_controlled_length
        call = self.calls.get(stream_id)
        if call is None:
            self._h2.acknowledge_received_data(flow_bytes, stream_id)
            return
        try:
            call.feed(event.data, flow_bytes)
        except CallEnded as end:
            self.finish(call, end.status, end.message)

    def _stream_ended(self, event: StreamEnded) -> None:
        call = self.calls.get(event.stream_id)
        if call is not None:
            call.client_ended()
            if call.task is None:
                self._begin(call)

    def _stream_reset(self, event: StreamReset) -> None:
        call = self.calls.get(event.stream_id)
        if call is not None:
            self._forget(call)

    def _window_updated(self, event: WindowUpdated) -> None:
        if not event.stream_id:
            self._wake_later()
        elif (call := self.calls.get(event.stream_id)) is not None and call in self._waiting:
            _wake(self._waiting[call])

    def _settings_changed(self, event: RemoteSettingsChanged) -> None:
        self._has_settings = True
        self._wake_later()

    # Calls

    def acknowledge(self, stream_id: int, received_bytes: int) -> None:
        """Returns received bytes to the client's flow-control window."""
        if not self._is_closing:
            self._h2.acknowledge_received_data(received_bytes, stream_id)
            self._flush_later()

    def held_changed(self, by_bytes: int) -> None:
        """Adds to the number of bytes that calls hold in memory. A negative number releases bytes."""
        self._held_bytes += by_bytes
        self._note_memory()

    async def send(self, call: Call, data: bytes) -> None:
        """Sends data as soon as the client's flow-control window allows it. Raises CallEnded if that takes too long."""
        if not call.method.has_one_answer:
            await self._send(call, data)
            return
        self._unread_bytes += len(data)
        try:
            await self._send(call, data)
        finally:
            self._unread_bytes -= len(data)

    async def _send(self, call: Call, data: bytes) -> None:
        sent = 0
        while sent < len(data):
            if self._is_closing or call.stream_id not in self.calls:
                raise CallEnded(GrpcStatus.UNAVAILABLE, "the call has ended")
            if not call.is_answered:
                self._h2.send_headers(call.stream_id, _BEGINNING)
                call.is_answered = True
            room = min(self._h2.local_flow_control_window(call.stream_id), self._h2.max_outbound_frame_size, len(data) - sent)
            if room <= 0 or not self._is_writable:
                self._flush()
                await self._room(call)
                continue
            self._h2.send_data(call.stream_id, data[sent : sent + room])
            sent += room
            if sent % _WRITTEN_AT_ONCE_BYTES < room:
                self._flush()
        self._budget.earn(len(data) // _EARNED_PER_BYTES)
        self._flush_later()

    def finish(self, call: Call, status: GrpcStatus = GrpcStatus.OK, message: str = "") -> None:
        """Ends the call with a status."""
        if self._is_closing or self.calls.get(call.stream_id) is not call:
            return
        try:
            self._h2.send_headers(call.stream_id, _ending(status, message, is_answered=call.is_answered), end_stream=True)
            if not call.has_client_ended:
                self._h2.reset_stream(call.stream_id, ErrorCodes.NO_ERROR)
        except ProtocolError as error:
            self._refuse(f"it violates HTTP/2: {str(error)[:200]}", None)
        self._budget.earn(_EARNED_BY_CALL)
        self._forget(call)
        self._flush_later()

    def _begin_delayed(self) -> None:
        """Begins the next delayed call, unless too much output is unread. When that call ends, the next delayed call begins."""
        while self._delayed and self._unread_bytes <= _MAX_UNREAD_BYTES:
            call = self._delayed.popleft()
            if self.calls.get(call.stream_id) is call:
                self._begin(call)
                return

    def _begin(self, call: Call) -> None:
        if call.method.has_one_answer and self._unread_bytes > _MAX_UNREAD_BYTES:
            self._delayed.append(call)
            return
        call.task = self._port.run(call)
        call.task.add_done_callback(lambda task: self._served(call, task))

    def _served(self, call: Call, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            self.finish(call, GrpcStatus.UNAVAILABLE, "the broker is stopping")
            return
        error = task.exception()
        if isinstance(error, CallEnded):
            self.finish(call, error.status, error.message)
        elif error is not None:
            logger.error("a call failed", exc_info=error)
            self.finish(call, GrpcStatus.INTERNAL, "internal error: see the broker's log")
        else:
            self.finish(call)

    def _deadline(self, call: Call) -> None:
        self.finish(call, GrpcStatus.DEADLINE_EXCEEDED, "the call's deadline has passed")

    def _forget(self, call: Call) -> None:
        """Frees the call's memory and cancels its task."""
        if self.calls.get(call.stream_id) is not call:
            return
        del self.calls[call.stream_id]
        call.release()
        if call.task is not None and not call.task.done():
            call.task.cancel()
        if not self._is_closing:
            self._begin_delayed()
        self._close_if_left()

    async def _room(self, call: Call) -> None:
        future = self._waiting[call] = self._loop.create_future()
        try:
            async with asyncio.timeout(TAKEN_WITHIN_S):
                await future
        except TimeoutError:
            self._port.complain(self.peer, "unread answers", f"it has not read its answers for {TAKEN_WITHIN_S:.0f} s")
            message = f"the client has not read its answer for {TAKEN_WITHIN_S:g} s"
            raise CallEnded(GrpcStatus.DEADLINE_EXCEEDED, message) from None
        finally:
            del self._waiting[call]

    def _wake_later(self) -> None:
        if self._waiting and not self._is_wake_due:
            self._is_wake_due = True
            self._loop.call_soon(self._wake_all)

    def _wake_all(self) -> None:
        self._is_wake_due = False
        for future in self._waiting.values():
            _wake(future)

    # The transport

    def _flush_later(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        data = self._h2.data_to_send()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > NOT_COUNTED_BYTES:
                self._note_memory()

    def _note_memory(self) -> None:
        if self._transport is not None:
            self._port.memory.note(self, self.held_bytes)

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _refuse(self, reason: str, code: ErrorCodes | None) -> None:
        """Logs the reason and closes the connection. `code` is None if h2 has sent its own GOAWAY."""
        self._port.complain(self.peer, "HTTP/2", reason)
        self._flush()
        if code is not None and self._transport is not None:
            self._transport.write(GoAwayFrame(0, self._h2.highest_inbound_stream_id, error_code=code).serialize())
        self.close()

    def _close_if_left(self) -> None:
        if self._is_leaving and not self.calls and not self._is_closing:
            self._loop.call_soon(self.close)

    def close(self) -> None:
        """Closes the connection once all output is sent, or after some seconds if the client does not read the output."""
        if self._is_closing or self._transport is None:
            return
        self._flush()
        self._is_closing = True
        self._transport.close()
        self._timer = self._loop.call_later(_CLOSES_WITHIN_S, self._transport.abort)

    def _is_late(self) -> None:
        if not self._has_settings:
            self._port.complain(self.peer, "silence", f"it has not begun HTTP/2 after {BEGINS_WITHIN_S:.0f} s")
            self.abort()

    def _is_unread(self) -> None:
        self._port.complain(self.peer, "unread answers", f"it has not read its answers for {TAKEN_WITHIN_S:.0f} s")
        self.abort()


_HANDLERS: Final[dict[type[Event], Callable[[Http2Connection, Any], None]]] = {
    RequestReceived: Http2Connection._requested,
    DataReceived: Http2Connection._data_came,
    StreamEnded: Http2Connection._stream_ended,
    StreamReset: Http2Connection._stream_reset,
    WindowUpdated: Http2Connection._window_updated,
    RemoteSettingsChanged: Http2Connection._settings_changed,
}

_BEGINNING: Final = (HeaderTuple(":status", "200"), HeaderTuple("content-type", "application/grpc"))


def _ending(status: GrpcStatus, message: str, *, is_answered: bool) -> list[HeaderTuple]:
    headers = [] if is_answered else [*_BEGINNING]
    headers.append(HeaderTuple("grpc-status", str(int(status))))
    if message:
        # Not indexed, so that a client cannot fill the compression tables with texts of its choice.
        headers.append(NeverIndexedHeaderTuple("grpc-message", message_header(message)))
    return headers


def _new_h2() -> H2Connection:
    """Returns a server-side h2 connection whose settings are ready to be sent."""
    config = H2Configuration(
        client_side=False, header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
    )
    made = _Http2(config)
    made.local_settings = Settings(
        client=False,
        initial_values={
            SettingCodes.MAX_CONCURRENT_STREAMS: MAX_CALLS,
            SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST_BYTES,
            SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW_BYTES,
        },
    )
    made.decoder.max_header_list_size = MAX_HEADER_LIST_BYTES
    made.initiate_connection()
    made.receive_data(frames.PREFACE)
    made.increment_flow_control_window(_CONNECTION_WINDOW_BYTES - _FIRST_WINDOW_BYTES)
    return made


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
