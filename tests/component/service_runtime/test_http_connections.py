"""Tests of clients that keep idle connections open, with real sockets and results that do not depend on time."""

import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
from flask import Flask, request
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]

from rocketmq_broker.world import World
from service_runtime.http.http_server import HttpServer
from service_runtime.settings.common import HttpSettings
from tests.waiting import wait_until

FILES = 3_000
"""The files that the test may open: the server takes 1,000 connections then, and both ends of them are in this process."""


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """Yields a server with the limits of a service whose process may open many files."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < FILES:
        pytest.skip(f"this process may open {most} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, FILES), most))
    app = Flask(__name__)
    app.add_url_rule("/", "fine", lambda: "fine")
    app.add_url_rule("/", "length", lambda: str(len(request.get_data())), methods=["POST"])
    started = HttpServer(app, HttpSettings(http_port=0, http_threads=8, stop_timeout_s=0.1), World())
    started.start()
    yield started
    started.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


@pytest.fixture
def connect(server: HttpServer) -> Iterator[Callable[[bytes], socket.socket]]:
    """Yields a function that opens a connection and sends the first bytes."""
    with ExitStack() as stack:

        def opened(beginning: bytes) -> socket.socket:
            host, _, port = server.addresses[0].rpartition(":")
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            client.sendall(beginning)
            return client

        yield opened


Connect = Callable[[bytes], socket.socket]
SLOW = [
    pytest.param(b"", id="silent"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", id="headers that never end"),
    pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx", id="a body that never ends"),
    pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx", id="chunks that never end"),
]


@pytest.mark.parametrize("beginning", SLOW)
def test_500_connections_that_keep_the_server_waiting_shut_nobody_out(
    server: HttpServer, connect: Connect, beginning: bytes
) -> None:
    for _ in range(500):
        connect(beginning)

    assert httpx.get(server.url, timeout=30).text == "fine"


@pytest.mark.parametrize("beginning", SLOW[::2])
def test_a_connection_without_a_byte_for_a_minute_is_closed(server: HttpServer, connect: Connect, beginning: bytes) -> None:
    client = connect(beginning)
    wait_until(lambda: server._connections())
    (connection,) = server._connections()
    wait_until(lambda: not beginning or connection.request is not None)
    _age_by_s(connection, 61)

    assert client.recv(1) == b""


def _age_by_s(connection: HTTPChannel, seconds: float) -> None:
    """Makes the connection appear to Waitress as idle for `seconds` seconds more."""
    connection.last_activity -= seconds


def test_many_requests_on_one_connection_are_answered(connect: Connect) -> None:
    client = connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    answers = b""
    while answers.count(b"fine") < 50:
        data = client.recv(65536)
        assert data
        answers += data


def test_a_header_beyond_the_limit_is_refused(connect: Connect) -> None:
    client = connect(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 70_000 + b"\r\n\r\n")

    assert client.recv(1000).startswith(b"HTTP/1.0 431")
