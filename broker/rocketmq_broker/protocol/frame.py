"""Decodes a stream of bytes into commands (RocketMQ's NettyDecoder)."""

from typing import Final

from librt.strings import read_i32_be

from rocketmq_broker.protocol.command import RemotingCommand, decode_command
from rocketmq_broker.protocol.errors import FrameError, OtherProtocol
from rocketmq_broker.protocol.other_protocols import meaning, other_protocol

MAX_FRAME_LENGTH: Final = 16 * 1024 * 1024
"""The maximum length of a frame that Apache's clients and servers accept, including the 4 bytes of LENGTH."""
_LENGTH_SIZE: Final = 4


class FrameDecoder:
    """Decodes the bytes received on one connection. Buffers at most one incomplete frame."""

    def __init__(self, max_frame_length: int = MAX_FRAME_LENGTH, max_header_length: int = MAX_FRAME_LENGTH) -> None:
        """Creates a decoder that rejects frames and headers longer than these limits in bytes.

        A frame's length includes the 4 bytes of LENGTH.
        """
        self._max_frame_length = max_frame_length
        self._max_header_length = max_header_length
        self._buffered = bytearray()
        self._wanted = _LENGTH_SIZE
        self.failure: FrameError | None = None
        """The error after which no more bytes can be decoded, or None.

        `feed` first returns the commands before the error, then raises it.
        """

    @property
    def buffered_length(self) -> int:
        """Returns the number of buffered bytes of an incomplete frame."""
        return len(self._buffered)

    def drop(self) -> None:
        """Discards the buffered bytes and `failure`. Call it when the connection ends."""
        self._buffered = bytearray()
        self.failure = None

    def feed(self, data: bytes) -> list[RemotingCommand]:
        """Returns the commands that are complete, in order.

        Raises FrameError for bytes that are not a frame. If complete commands precede these bytes, returns the commands,
        sets `failure`, and raises the error in the next call.
        """
        if self.failure is not None:
            raise self.failure
        if self._buffered:
            self._buffered += data
            if len(self._buffered) < self._wanted:
                return []
            data = bytes(self._buffered)
            self._buffered.clear()
        commands: list[RemotingCommand] = []
        try:
            position = self._decode(data, commands)
        except FrameError as error:
            self.failure = error
            if not commands:
                raise
            return commands
        if position < len(data):
            self._buffered += memoryview(data)[position:]
        return commands

    def _decode(self, data: bytes, commands: list[RemotingCommand]) -> int:
        """Appends the commands of all complete frames in `data` to `commands`.

        Returns the position after the last complete frame.
        """
        position, available = 0, len(data)
        max_length = self._max_frame_length - 4
        self._wanted = _LENGTH_SIZE
        while available - position >= 8:
            length: int = read_i32_be(data, position)
            type_and_header_length: int = read_i32_be(data, position + 4)
            end = position + 4 + length
            if end > available or not 4 <= length <= max_length:
                break
            header_start = position + 8
            body_start = header_start + (type_and_header_length & 0xFFFFFF)
            if body_start > end:
                raise FrameError(f"header too long for its frame of {length} bytes: {body_start - header_start} bytes")
            if body_start - header_start > self._max_header_length:
                length = body_start - header_start
                raise FrameError(f"header too long: {length} bytes, at most {self._max_header_length}")
            commands.append(decode_command(data[position + 4], data, header_start, body_start, end))
            position = end
        if available - position >= _LENGTH_SIZE:
            self._wanted = self._frame_length(data, position)
        return position

    def _frame_length(self, data: bytes, position: int) -> int:
        """Returns the length of the frame at `position`, including the 4 bytes of LENGTH. Raises FrameError if it is invalid."""
        length: int = read_i32_be(data, position)
        if (protocol := other_protocol(data[position : position + 4])) is not None:
            raise OtherProtocol(protocol, meaning(protocol))
        if length < 4:
            raise FrameError(f"frame length must be at least 4 bytes, not {length}")
        if length + 4 > self._max_frame_length:
            raise FrameError(f"frame length must be at most {self._max_frame_length - 4} bytes, not {length}")
        return length + 4
