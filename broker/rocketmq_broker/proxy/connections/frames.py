"""Splits a connection's bytes into HTTP/2 frames, and limits useless frames (RFC 9113, 4).

+-----------------+----------+-----------+---------------+- - - - - +
| length, 3 bytes | type, 1  | flags, 1  | stream id, 4  | payload  |
+-----------------+----------+-----------+---------------+- - - - - +
"""

from typing import Final, NamedTuple

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The first bytes of each HTTP/2 connection."""
MAX_FRAME_BYTES: Final = 16 * 1024
"""The maximum payload of a frame in bytes, which is HTTP/2's default."""
MAX_HEADER_BLOCK_BYTES: Final = 64 * 1024
"""The maximum size in bytes of a compressed header block with all its CONTINUATION frames."""

DATA: Final = 0
HEADERS: Final = 1
RST_STREAM: Final = 3
GOAWAY: Final = 7
CONTINUATION: Final = 9
_END_HEADERS: Final = 0x04
_HEADER_BYTES: Final = 9

_FIRST_ALLOWANCE: Final = 600.0
_MAX_ALLOWANCE: Final = 3000.0
_ALLOWED_EACH_SECOND: Final = 100.0


class FrameRefused(Exception):
    """Raised if the client violates HTTP/2 or exceeds a limit. The message describes the violation."""


class Frame(NamedTuple):
    """A complete frame. `data` includes the frame's header."""

    type: int
    stream_id: int
    data: bytes

    @property
    def payload_bytes(self) -> int:
        """Returns the length of the payload."""
        return len(self.data) - _HEADER_BYTES


class FrameSplitter:
    """Splits received bytes into frames. The buffer contains at most one incomplete frame and the rest of one read."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._block_bytes = 0
        self._is_begun = False

    @property
    def held_bytes(self) -> int:
        """Returns the number of bytes that `next` has not returned yet, plus the size of an incomplete header block."""
        return len(self._data) + self._block_bytes

    def feed(self, data: bytes) -> None:
        """Adds received bytes. Raises FrameRefused if the connection does not begin with HTTP/2's preface."""
        self._data += data
        if not self._is_begun and not PREFACE.startswith(self._data[: len(PREFACE)]):
            raise FrameRefused("the connection does not begin with the HTTP/2 preface")

    def drop(self) -> None:
        """Discards all bytes."""
        self._data.clear()
        self._block_bytes = 0

    def next(self) -> Frame | None:
        """Returns the next complete frame after the preface, or None if there is none.

        Raises FrameRefused if the frame is too long.
        """
        if not self._is_begun:
            if len(self._data) < len(PREFACE):
                return None
            del self._data[: len(PREFACE)]
            self._is_begun = True
        if len(self._data) < _HEADER_BYTES:
            return None
        length, kind, flags = int.from_bytes(self._data[:3], "big"), self._data[3], self._data[4]
        if length > MAX_FRAME_BYTES:
            raise FrameRefused(f"frame too long: {length} bytes, at most {MAX_FRAME_BYTES}")
        if len(self._data) < _HEADER_BYTES + length:
            return None
        frame = Frame(kind, int.from_bytes(self._data[5:9], "big") & 0x7FFF_FFFF, bytes(self._data[: _HEADER_BYTES + length]))
        del self._data[: _HEADER_BYTES + length]
        if kind in (HEADERS, CONTINUATION):
            self._block_bytes = 0 if flags & _END_HEADERS else self._block_bytes + length
            if self._block_bytes > MAX_HEADER_BLOCK_BYTES:
                raise FrameRefused(f"header block too long: more than {MAX_HEADER_BLOCK_BYTES} bytes")
        return frame


class FrameBudget:
    """A token bucket for useless frames. Elapsed time and calls that end normally refill the bucket."""

    def __init__(self, now_s: float) -> None:
        self._left = _FIRST_ALLOWANCE
        self._at_s = now_s

    def spend(self, cost: int, now_s: float) -> None:
        """Subtracts the cost of a frame. Raises FrameRefused if the bucket is empty."""
        self._left = min(_MAX_ALLOWANCE, self._left + (now_s - self._at_s) * _ALLOWED_EACH_SECOND) - cost
        self._at_s = now_s
        if self._left < 0:
            raise FrameRefused("too many frames without useful data, such as resets, pings and settings")

    def earn(self, frames: int) -> None:
        """Adds to the number of allowed frames."""
        self._left = min(_MAX_ALLOWANCE, self._left + frames)
