"""Tests that incomplete HTTP requests do not make the console unavailable."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from rocketmq_broker.admin.console.patience import PatientProtocol
from rocketmq_broker.admin.console.serving import server_config

WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = [
    b"",
    b"G",
    b"GET / HTTP/1.1\r\nHost: x\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf",
    WHOLE + b"GET / HT",
]


class Impatient(PatientProtocol):
    request_timeout_s = 0.2
    max_connections = 10


async def home(request: Request) -> PlainTextResponse:
    await request.body()
    return PlainTextResponse("home")


@contextlib.asynccontextmanager
async def serving(connection: type[PatientProtocol]) -> AsyncIterator[int]:
    """Runs a console server with one page, and yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        app = Starlette(routes=[Route("/", home, methods=["GET", "POST"])])
        server = uvicorn.Server(server_config(app, connection))
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
        running = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield sock.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            await running


async def answer(port: int, request: bytes = WHOLE) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(30):
        line = await reader.readline()
    writer.close()
    return line


@pytest.mark.parametrize("half", HALF)
async def test_who_does_not_end_a_request_is_cut_off(half: bytes) -> None:
    async with serving(Impatient) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(half)
        async with asyncio.timeout(30):
            with contextlib.suppress(ConnectionError):
                await reader.read()
        writer.close()
        assert await answer(port) == b"HTTP/1.1 200 OK\r\n"


async def test_half_requests_make_room_for_whole_ones() -> None:
    class Crowded(PatientProtocol):
        max_connections = 10

    async with serving(Crowded) as port:
        halves = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        for _, writer in halves:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        for _ in range(20):
            assert await answer(port) == b"HTTP/1.1 200 OK\r\n"
        for _, writer in halves:
            writer.close()
