"""One gRPC call over HTTP/2, with request messages, response messages and a final status."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol
from urllib.parse import quote

_PREFIX_BYTES: Final = 5
"""The size of the prefix of each message: a compression flag of 1 byte and a length of 4 bytes."""
_TIMEOUT: Final = re.compile(r"(\d{1,8})([HMSmun])")
_UNITS_S: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_MAX_TIMEOUT_S: Final = 30 * 24 * 3600.0
"""The maximum timeout of a call, in seconds. Event loop timers are limited to a few weeks."""
_UNQUOTED: Final = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"


class GrpcStatus(IntEnum):
    """The gRPC statuses that this server uses."""

    OK = 0
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class CallEnded(Exception):
    """Raised to end a call with a status other than OK."""

    def __init__(self, status: GrpcStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Method:
    """The handler of a method, with its limits."""

    serve: Callable[["Call"], Awaitable[None]]
    """A function that handles one call. Raises CallEnded."""
    max_message_bytes: int
    is_telemetry: bool = False
    """Whether the client sends several messages. If so, the call begins before the first message arrives."""
    has_one_answer: bool = True


class CallConnection(Protocol):
    """The connection of a call."""

    def acknowledge(self, stream_id: int, received_bytes: int) -> None:
        """Returns received bytes to the client's flow-control window."""

    def held_changed(self, by_bytes: int) -> None:
        """Adds to the number of bytes that calls hold in memory. A negative number releases bytes."""

    async def send(self, call: "Call", data: bytes) -> None:
        """Sends data as soon as the client's flow-control window allows it. Raises CallEnded if that takes too long."""


class Call:
    """A call in progress. Its memory use includes received data until the call ends, and responses until they are sent."""

    def __init__(
        self,
        connection: CallConnection,
        stream_id: int,
        method: Method,
        metadata: dict[str, str],
        address: tuple[str, int],
        now_s: float,
    ) -> None:
        """Creates a call. Raises CallEnded for an invalid grpc-timeout."""
        self.stream_id = stream_id
        self.method = method
        self.metadata = metadata
        self.address = address
        self.began_s = now_s
        self.deadline_s = now_s + _timeout_s(metadata["grpc-timeout"]) if "grpc-timeout" in metadata else None
        """The deadline in seconds on the event loop's clock; None if the call has no deadline."""
        self.has_client_ended = False
        self.is_answered = False
        """Whether the headers and a message have been sent."""
        self.small_frames = 0
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._connection = connection
        self._data = bytearray()
        self._taken = 0
        self._unacknowledged = 0
        self._held_bytes = 0
        self._is_released = False
        self._more: asyncio.Future[None] | None = None

    def remaining_s(self) -> float | None:
        """Returns the seconds until the client's deadline, or None if the call has no deadline."""
        return None if self.deadline_s is None else max(0.0, self.deadline_s - asyncio.get_running_loop().time())

    def feed(self, data: bytes, flow_bytes: int) -> None:
        """Adds received data. `flow_bytes` is its size for flow control. Raises CallEnded for an invalid message."""
        self._data += data
        self.hold(len(data))
        self._unacknowledged += flow_bytes
        length = self._next_length()
        if not self.method.is_telemetry:
            if length is not None and len(self._data) > length + _PREFIX_BYTES:
                raise CallEnded(GrpcStatus.INTERNAL, "more than one message in a unary call")
            self._acknowledge()
        elif length is None or len(self._data) - self._taken < length + _PREFIX_BYTES:
            self._acknowledge()
        self._wake()

    def client_ended(self) -> None:
        """Records that the client will send no more data."""
        self.has_client_ended = True
        self._wake()

    async def read(self) -> bytes | None:
        """Returns the next message, or None after the client's last message. Raises CallEnded for an invalid message."""
        while True:
            length = self._next_length()
            end = self._taken + _PREFIX_BYTES + (length or 0)
            if length is not None and len(self._data) >= end:
                message = bytes(self._data[self._taken + _PREFIX_BYTES : end])
                self._taken = end
                if self.method.is_telemetry and (self._taken == len(self._data) or self._taken > 64 * 1024):
                    del self._data[: self._taken]
                    self.hold(-self._taken)
                    self._taken = 0
                    if not self._data:
                        self._acknowledge()
                return message
            if self.has_client_ended:
                if len(self._data) > self._taken:
                    raise CallEnded(GrpcStatus.INTERNAL, "the call ends in the middle of a message")
                return None
            self._acknowledge()
            self._more = asyncio.get_running_loop().create_future()
            await self._more

    async def write(self, message: bytes) -> None:
        """Sends a response, and returns once it is sent. Raises CallEnded if the client does not read."""
        data = b"\x00" + len(message).to_bytes(4, "big") + message
        self.hold(len(data))
        try:
            await self._connection.send(self, data)
        finally:
            self.hold(-len(data))

    def hold(self, by_bytes: int) -> None:
        """Adds to the number of bytes that the call holds in memory. A negative number releases bytes."""
        if not self._is_released:
            self._held_bytes += by_bytes
            self._connection.held_changed(by_bytes)

    def release(self) -> None:
        """Frees the call's memory and stops its timer."""
        if self.timer is not None:
            self.timer.cancel()
        self._data.clear()
        self.hold(-self._held_bytes)
        self._is_released = True

    def _next_length(self) -> int | None:
        """Returns the length of the next message, or None before its prefix has arrived.

        Raises CallEnded for an invalid prefix.
        """
        if len(self._data) - self._taken < _PREFIX_BYTES:
            return None
        if self._data[self._taken]:
            raise CallEnded(GrpcStatus.UNIMPLEMENTED, "compressed messages are not supported: use grpc-encoding identity")
        length = int.from_bytes(self._data[self._taken + 1 : self._taken + _PREFIX_BYTES], "big")
        if length > self.method.max_message_bytes:
            reason = f"message too long: {length} bytes, at most {self.method.max_message_bytes}"
            raise CallEnded(GrpcStatus.RESOURCE_EXHAUSTED, reason)
        return length

    def _acknowledge(self) -> None:
        if self._unacknowledged and not self.has_client_ended:
            received_bytes, self._unacknowledged = self._unacknowledged, 0
            self._connection.acknowledge(self.stream_id, received_bytes)

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)


def metadata_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Returns the text headers. Skips headers whose names end in -bin, because they have binary values."""
    return {
        name.decode(): value.decode()
        for name, value in headers
        if name.isascii() and value.isascii() and not name.endswith(b"-bin")
    }


def message_header(message: str) -> str:
    """Encodes a status message for a header: percent-encoded, and at most 500 characters long."""
    return quote(message[:500], safe=_UNQUOTED)


def _timeout_s(text: str) -> float:
    read = _TIMEOUT.fullmatch(text)
    if read is None:
        raise CallEnded(
            GrpcStatus.INTERNAL, f"invalid grpc-timeout {text[:20]!r}: must be 1 to 8 digits and one of H, M, S, m, u, n"
        )
    return min(int(read[1]) * _UNITS_S[read[2]], _MAX_TIMEOUT_S)
