"""The decoder from a stream of bytes to commands (RocketMQ's NettyDecoder)."""

from typing import Final

from librt.strings import read_i32_be

from rocketmq_broker.protocol.command import RemotingCommand, decode_command
from rocketmq_broker.protocol.errors import FrameError, OtherProtocol
from rocketmq_broker.protocol.other_protocols import meaning, other_protocol

MAX_FRAME_LENGTH: Final = 16 * 1024 * 1024
"""The longest frame that Apache's peers accept, 4 bytes of length included."""
_LENGTH_SIZE: Final = 4


class FrameDecoder:
    """A decoder of one connection's bytes. It holds at most the bytes of one incomplete frame."""

    def __init__(self, max_frame_length: int = MAX_FRAME_LENGTH, max_header_length: int = MAX_FRAME_LENGTH) -> None:
        """Refuses frames longer than `max_frame_length`, their 4 bytes of length included, and headers beyond their limit."""
        self._max_frame_length = max_frame_length
        self._max_header_length = max_header_length
        self._buffered = bytearray()
        self._wanted = _LENGTH_SIZE
        self.failure: FrameError | None = None
        """The error after which nothing can be decoded; `feed` raises it unless commands came before it in the same bytes."""

    @property
    def buffered_length(self) -> int:
        """Returns the number of bytes held of an incomplete frame."""
        return len(self._buffered)

    def drop(self) -> None:
        """Drops an incomplete frame and the failure, after the last bytes."""
        self._buffered = bytearray()
        self.failure = None

    def feed(self, data: bytes) -> list[RemotingCommand]:
        """Returns the commands that are complete now, in order.

        Raises FrameError at the first bytes that are no frame. If commands come before these they are returned instead, with
        the error in `failure`, and the next call raises it.
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
        """Adds the commands of the whole frames at the beginning of `data`; returns the end of the last."""
        position, available = 0, len(data)
        longest = self._max_frame_length - 4
        self._wanted = _LENGTH_SIZE
        while available - position >= 8:
            length: int = read_i32_be(data, position)
            type_and_header_length: int = read_i32_be(data, position + 4)
            end = position + 4 + length
            if end > available or not 4 <= length <= longest:
                break
            header_start = position + 8
            body_start = header_start + (type_and_header_length & 0xFFFFFF)
            if body_start > end:
                raise FrameError(f"a frame of {length} bytes says that {body_start - header_start} of them are its header")
            if body_start - header_start > self._max_header_length:
                length = body_start - header_start
                raise FrameError(f"a frame whose header has {length} bytes: {self._max_header_length} are the most")
            commands.append(decode_command(data[position + 4], data, header_start, body_start, end))
            position = end
        if available - position >= _LENGTH_SIZE:
            self._wanted = self._frame_length(data, position)
        return position

    def _frame_length(self, data: bytes, position: int) -> int:
        """Returns the length of the frame that begins here, its 4 bytes of length included."""
        length: int = read_i32_be(data, position)
        if (protocol := other_protocol(data[position : position + 4])) is not None:
            raise OtherProtocol(protocol, meaning(protocol))
        if length < 4:
            raise FrameError(f"a frame of {length} bytes: 4 are the least")
        if length + 4 > self._max_frame_length:
            raise FrameError(f"a frame of {length} bytes: {self._max_frame_length - 4} are the most")
        return length + 4
