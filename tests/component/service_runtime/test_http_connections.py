"""Clients that hold connections and do nothing with them, beside one that asks. Real sockets, no clock in the outcome."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from flask import Flask, request

from rocketmq_broker.world import World
from service_runtime.http.http_connection import Patience
from service_runtime.http.http_server import HttpServer
from tests.waiting import wait_until

Serve = Callable[..., HttpServer]
NEVER = Patience(to_ask_s=3600, to_end_request_s=3600, to_read_answer_s=3600)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that never run out of patience unless a test says so, and stops them."""
    with ExitStack() as stack:

        def start(slow: Callable[[], str] = str, **more: Any) -> HttpServer:
            app = Flask(__name__)
            app.add_url_rule("/", "fine", lambda: "fine")
            app.add_url_rule("/large", "large", lambda: "x" * 20_000_000)
            app.add_url_rule("/", "length", lambda: str(len(request.get_data())), methods=["POST"])
            app.add_url_rule("/slow", "slow", slow)
            settings = {"host": "127.0.0.1", "port": 0, "threads": 4, "stop_timeout_s": 0.1, "patience": NEVER, **more}
            server = HttpServer(app, World(), **settings)
            server.start()
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture
def connect() -> Iterator[Callable[..., socket.socket]]:
    """Opens connections and sends a beginning on each."""
    with ExitStack() as stack:

        def opened(server: HttpServer, beginning: bytes = b"") -> socket.socket:
            host, _, port = server.addresses[0].rpartition(":")
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            client.sendall(beginning)
            return client

        yield opened


Connect = Callable[..., socket.socket]
SLOW = [
    pytest.param(b"", id="silent"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", id="headers that never end"),
    pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx", id="a body that never ends"),
    pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx", id="chunks that never end"),
]


@pytest.mark.parametrize("beginning", SLOW)
def test_500_connections_that_keep_the_server_waiting_shut_nobody_out(serve: Serve, connect: Connect, beginning: bytes) -> None:
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < 2000:
        pytest.skip(f"this process may open {most} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, 2000), most))
    server = serve(most_connections=100)

    for _ in range(500):
        connect(server, beginning)

    assert httpx.get(server.url, timeout=60).text == "fine"
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


def test_idle_connections_that_were_answered_once_make_room(serve: Serve, connect: Connect) -> None:
    server = serve(most_connections=50)
    for _ in range(120):
        client = connect(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")

    assert httpx.get(server.url, timeout=60).text == "fine"


def test_of_many_the_one_that_waited_longest_makes_room_and_one_that_is_worked_on_is_spared(
    serve: Serve, connect: Connect
) -> None:
    may_answer, is_running = threading.Event(), threading.Event()

    def answer() -> str:
        is_running.set()
        assert may_answer.wait(60)
        return "slow"

    server = serve(answer, most_connections=20)
    working = connect(server, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
    assert is_running.wait(60)
    waiting = [connect(server) for _ in range(60)]

    assert waiting[0].recv(1) == b""
    may_answer.set()
    assert working.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("beginning", SLOW[1:])
def test_bytes_that_trickle_in_do_not_prolong_a_request(serve: Serve, connect: Connect, beginning: bytes) -> None:
    server = serve(patience=Patience(to_ask_s=3600, to_end_request_s=0.5, to_read_answer_s=3600))
    client = connect(server, beginning)
    client.settimeout(0.1)
    for _ in range(600):
        try:
            if not client.recv(1000):
                return
            client.sendall(b"x")
        except TimeoutError:
            client.sendall(b"x")
        except OSError:
            return
    pytest.fail("the connection is still open")


def test_a_client_that_reads_its_answer_too_slowly_is_cut_off(serve: Serve, connect: Connect) -> None:
    server = serve(patience=Patience(to_ask_s=3600, to_end_request_s=3600, to_read_answer_s=0.5))
    client = connect(server, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    assert client.recv(1) == b"H"
    wait_until(lambda: not server._connections())


def test_an_idle_connection_is_closed_after_a_while(serve: Serve, connect: Connect) -> None:
    client = connect(serve(patience=Patience(to_ask_s=0.2)))

    assert client.recv(1) == b""


def test_many_requests_on_one_connection_have_patience_each(serve: Serve, connect: Connect) -> None:
    server = serve(patience=Patience(to_ask_s=3600, to_end_request_s=20, to_read_answer_s=3600))
    client = connect(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    answers = b""
    while answers.count(b"fine") < 50:
        data = client.recv(65536)
        assert data
        answers += data


def test_a_header_beyond_the_limit_is_refused(serve: Serve, connect: Connect) -> None:
    client = connect(serve(), b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 70_000 + b"\r\n\r\n")

    assert client.recv(1000).startswith(b"HTTP/1.0 431")
