"""A connection to the proxy that can send any frames, including invalid ones."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import hpack

from tests.component.proxy.api_client import SERVICE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4
CANCEL = struct.pack(">I", 8)


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream_id) + payload


def message(data: bytes) -> bytes:
    return b"\x00" + struct.pack(">I", len(data)) + data


def headers(name: str = "SendMessage", **others: str | bytes) -> bytes:
    """Returns the header block of a call. `others` add headers; a name that begins with `_` replaces a pseudo-header."""
    wanted: dict[str, str | bytes] = {":method": "POST", ":scheme": "http", ":path": SERVICE + name, ":authority": "localhost"}
    wanted |= {"content-type": "application/grpc", "te": "trailers", "x-mq-client-id": "raw"}
    wanted |= {(":" + key[1:] if key.startswith("_") else key.replace("_", "-")): value for key, value in others.items()}
    return hpack.Encoder().encode(list(wanted.items()), huffman=False)


def call(stream_id: int, name: str, data: bytes, **others: str | bytes) -> bytes:
    """Returns the frames of a whole call."""
    begin = frame(HEADERS, END_HEADERS, stream_id, headers(name, **others))
    return begin + frame(DATA, END_STREAM, stream_id, message(data))


class Frame(NamedTuple):
    kind: int
    flags: int
    stream_id: int
    payload: bytes


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._decoder = hpack.Decoder()
        self.goaway: int | None = None
        """The error code of the GOAWAY that came."""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def flood(self, data: bytes, times: int) -> int:
        """Sends the data up to `times` times, until the broker closes the connection. Returns the number of sends."""
        for sent in range(times):
            try:
                await self.send(data)
                await asyncio.sleep(0)
            except ConnectionError:
                return sent
            if self.reader.at_eof():
                return sent
        return times

    async def next(self) -> Frame | None:
        """Returns the next frame, or None at the end."""
        try:
            head = await self.reader.readexactly(9)
            payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        if head[3] == GOAWAY:
            self.goaway = int.from_bytes(payload[4:8], "big")
        return Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)

    async def end(self) -> int | None:
        """Reads until the broker has closed the connection. Returns the error code of its GOAWAY frame."""
        async with asyncio.timeout(30):
            while await self.next() is not None:
                pass
        return self.goaway

    async def answer(self, stream_id: int) -> tuple[dict[str, str], bytes]:
        """Returns the headers and trailers of a call, and its data."""
        found: dict[str, str] = {}
        data = b""
        while (got := await self.next()) is not None:
            if got.kind == HEADERS:
                decoded = dict(self._decoder.decode(got.payload))
                if got.stream_id == stream_id:
                    found |= decoded
            elif got.kind == DATA and got.stream_id == stream_id:
                data += got.payload
            if got.stream_id == stream_id and got.kind in (HEADERS, DATA) and got.flags & END_STREAM:
                return found, data
        raise ConnectionError("the broker closed the connection")


@asynccontextmanager
async def raw_connection(endpoint: str | None, settings: bytes = b"") -> AsyncIterator[RawClient]:
    assert endpoint is not None
    host, port = endpoint.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(PREFACE + frame(SETTINGS, 0, 0, settings))
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()
