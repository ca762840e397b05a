"""A client without limits of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder

PATIENCE_S: Final = 180.0
_READ_BYTES: Final = 1024 * 1024


class Peer:
    """A connection that reads only awaited answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = FrameDecoder()
        self._opaque = 0

    @classmethod
    async def connect(cls, address: str) -> Peer:
        """Connects. Raises OSError."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def frame(self, code: int, header: CommandHeader | None = None, body: bytes = b"") -> bytes:
        """Encodes a request with a new opaque."""
        self._opaque += 1
        return encode_request(code, header, body, opaque=self._opaque)

    async def write(self, data: bytes) -> None:
        """Writes, and returns when the system has taken nearly all of it. Raises ConnectionError."""
        self._writer.write(data)
        await self._writer.drain()

    async def ask(self, code: int, header: CommandHeader | None = None, body: bytes = b"") -> RemotingCommand:
        """Sends a request, and returns its answer. Raises TimeoutError, ConnectionError."""
        await self.write(self.frame(code, header, body))
        return (await self.answers(1))[-1]

    async def ask_all(self, frames: Iterable[bytes]) -> None:
        """Sends all frames, and reads as many answers."""
        frames = list(frames)
        sending = asyncio.create_task(self.write(b"".join(frames)))
        await self.answers(len(frames))
        await sending

    async def answers(self, count: int) -> list[RemotingCommand]:
        """Returns that many answers, and ignores the broker's requests. Raises TimeoutError, ConnectionError."""
        found: list[RemotingCommand] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                data = await self._reader.read(_READ_BYTES)
                if not data:
                    raise ConnectionResetError("the broker closed the connection")
                found += [command for command in self._decoder.feed(data) if command.is_response]
        return found

    async def is_closed(self) -> bool:
        """Returns whether the other end closes the connection within a few seconds."""
        try:
            async with asyncio.timeout(10):
                while await self._reader.read(_READ_BYTES):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    def hang_up(self) -> None:
        """Aborts the connection, with unsent and unread data."""
        self._writer.transport.abort()
