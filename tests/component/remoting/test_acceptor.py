"""Tests that a listener without free file descriptors pauses, logs this once, and continues automatically."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rocketmq_broker.platform.limits import reserve_port
from rocketmq_broker.remoting import acceptor
from rocketmq_broker.remoting.acceptor import Acceptor
from rocketmq_broker.remoting.network import TcpNetwork


class Listening:
    def __init__(self, sock: socket.socket) -> None:
        self.address = sock.getsockname()
        self.connected = 0

    def protocol(self) -> asyncio.Protocol:
        self.connected += 1
        return asyncio.Protocol()

    async def until_connected(self, count: int) -> None:
        async with asyncio.timeout(10):
            while self.connected < count:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


@asynccontextmanager
async def listening(sock: socket.socket) -> AsyncIterator[Listening]:
    sock.setblocking(False)
    it = Listening(sock)
    taking = Acceptor([sock], it.protocol, 16)
    taking.start()
    try:
        yield it
    finally:
        taking.stop()


@pytest.fixture(params=["readers", "no readers"], autouse=True)
async def _loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the test on an event loop with and without `add_reader`, which Windows' ProactorEventLoop does not support."""

    def refuse(*arguments: object) -> None:
        raise NotImplementedError

    if request.param == "no readers":
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "add_reader", refuse)
        monkeypatch.setattr(loop, "remove_reader", refuse)


@pytest.fixture
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "_REST_S", 0.01)


class Exhausted(socket.socket):
    """A socket that has no file descriptor for the next five connections."""

    failures = 5

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


async def test_a_listener_out_of_descriptors_says_so_once_and_goes_on_by_itself(
    short_rest: None, caplog: pytest.LogCaptureFixture
) -> None:
    sock = Exhausted()
    sock.bind(("127.0.0.1", 0))
    async with listening(sock) as it:
        _, writer = await asyncio.open_connection(*it.address)
        await it.until_connected(1)
        writer.close()
    assert sock.failures == 0
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (logging.ERROR, None)
    assert "no more connections can be accepted" in record.getMessage()
    assert "Too many open files; the limit is" in record.getMessage()


async def test_a_listener_that_was_not_started_is_stopped() -> None:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    Acceptor([sock], asyncio.Protocol, 16).stop()
    assert sock.fileno() == -1


async def test_a_listener_that_was_stopped_while_it_rests_stays_stopped(short_rest: None) -> None:
    sock = Exhausted()
    sock.bind(("127.0.0.1", 0))
    async with listening(sock) as it:
        client = socket.create_connection(it.address)
        async with asyncio.timeout(10):
            while sock.failures == 5:  # noqa: ASYNC110
                await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    assert it.connected == 0
    client.close()


async def test_an_exclusive_bind_refuses_a_port_that_another_server_has_bound() -> None:
    network = TcpNetwork()
    first = await network.bind(asyncio.Protocol, "127.0.0.1", 0, 10)
    port = first.port
    with pytest.raises(OSError, match="bind") as refused:
        await network.bind(asyncio.Protocol, "127.0.0.1", port, 10, is_exclusive=True)
    assert refused.value.errno == errno.EADDRINUSE
    first.stop()
    second = await network.bind(asyncio.Protocol, "127.0.0.1", port, 10, is_exclusive=True)
    reserved = reserve_port("127.0.0.1", port)
    second.start()
    second.stop()
    if reserved is not None:
        reserved.close()
