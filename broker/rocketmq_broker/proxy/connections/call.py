"""One call of a client by gRPC over HTTP/2: messages in, messages out, and a status at its end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol
from urllib.parse import quote

_PREFIX_BYTES: Final = 5
"""Before each message: whether it is compressed, 1 byte, and its length, 4 bytes."""
_TIMEOUT: Final = re.compile(r"(\d{1,8})([HMSmun])")
_UNITS_S: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_MAX_TIMEOUT_S: Final = 30 * 24 * 3600.0
"""The event loop's timers know no later time than some weeks."""
_UNQUOTED: Final = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"


class GrpcStatus(IntEnum):
    """The statuses of gRPC that end a call here."""

    OK = 0
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class CallEnded(Exception):
    """The end of a call with another status than OK."""

    def __init__(self, status: GrpcStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Method:
    """What serves the calls of one name."""

    serve: Callable[[Call], Awaitable[None]]
    """Raises CallEnded."""
    max_message_bytes: int
    is_telemetry: bool = False
    """Whether the client sends more than one message, and the call begins before the first."""
    has_one_answer: bool = True


class Carrier(Protocol):
    """The connection of a call."""

    def acknowledge(self, stream_id: int, received_bytes: int) -> None:
        """Lets the client send so many more bytes."""

    def held_changed(self, by_bytes: int) -> None:
        """Takes note that the call holds more, or less."""

    async def send(self, call: Call, data: bytes) -> None:
        """Sends data when the client has room for it. Raises CallEnded if it makes none in time."""


class Call:
    """A call under way. All that it holds is counted: what was read until it ends, and answers until they are sent."""

    def __init__(
        self, carrier: Carrier, stream_id: int, method: Method, metadata: dict[str, str], address: tuple[str, int], now_s: float
    ) -> None:
        """Raises CallEnded for a time-out that cannot be read."""
        self.stream_id = stream_id
        self.method = method
        self.metadata = metadata
        self.address = address
        self.began_s = now_s
        self.deadline_s = now_s + _timeout_s(metadata["grpc-timeout"]) if "grpc-timeout" in metadata else None
        """By the event loop's clock; None without one."""
        self.has_client_ended = False
        self.is_answered = False
        """Whether a message was sent, and with it the headers."""
        self.small_frames = 0
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._carrier = carrier
        self._data = bytearray()
        self._taken = 0
        self._unacknowledged = 0
        self._held_bytes = 0
        self._is_released = False
        self._more: asyncio.Future[None] | None = None

    def remaining_s(self) -> float | None:
        """Returns the time until the client's deadline; None without one."""
        return None if self.deadline_s is None else max(0.0, self.deadline_s - asyncio.get_running_loop().time())

    def feed(self, data: bytes, flow_bytes: int) -> None:
        """Takes what the client sent; `flow_bytes` is what it takes of the window. Raises CallEnded for what is no message."""
        self._data += data
        self.hold(len(data))
        self._unacknowledged += flow_bytes
        length = self._next_length()
        if not self.method.is_telemetry:
            if length is not None and len(self._data) > length + _PREFIX_BYTES:
                raise CallEnded(GrpcStatus.INTERNAL, "more than one message in a call that takes one")
            self._acknowledge()
        elif length is None or len(self._data) - self._taken < length + _PREFIX_BYTES:
            self._acknowledge()
        self._wake()

    def client_ended(self) -> None:
        """Takes note that the client sends no more."""
        self.has_client_ended = True
        self._wake()

    async def read(self) -> bytes | None:
        """Returns the next message; None when the client has ended. Raises CallEnded for what is no message."""
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
        """Sends an answer; returns when it has left. Raises CallEnded if the client does not read."""
        data = b"\x00" + len(message).to_bytes(4, "big") + message
        self.hold(len(data))
        try:
            await self._carrier.send(self, data)
        finally:
            self.hold(-len(data))

    def hold(self, by_bytes: int) -> None:
        """Counts bytes that the call holds, or holds no longer."""
        if not self._is_released:
            self._held_bytes += by_bytes
            self._carrier.held_changed(by_bytes)

    def release(self) -> None:
        """Frees what the call holds."""
        if self.timer is not None:
            self.timer.cancel()
        self._data.clear()
        self.hold(-self._held_bytes)
        self._is_released = True

    def _next_length(self) -> int | None:
        """Returns the length of the next message; None before it is known. Raises CallEnded for a message that is refused."""
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
            self._carrier.acknowledge(self.stream_id, received_bytes)

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)


def metadata_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Returns the headers that are text. Names that end in -bin hold bytes, which no call here reads."""
    return {
        name.decode(): value.decode()
        for name, value in headers
        if name.isascii() and value.isascii() and not name.endswith(b"-bin")
    }


def message_header(message: str) -> str:
    """Returns a status's message as a header holds it: percent-encoded, and no longer than clients read."""
    return quote(message[:500], safe=_UNQUOTED)


def _timeout_s(text: str) -> float:
    read = _TIMEOUT.fullmatch(text)
    if read is None:
        raise CallEnded(GrpcStatus.INTERNAL, "grpc-timeout: 1 to 8 digits and one of H, M, S, m, u and n are expected")
    return min(int(read[1]) * _UNITS_S[read[2]], _MAX_TIMEOUT_S)
