import logging
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from flask import Flask

from rocketmq_broker.world import World
from service_runtime.http import listening
from service_runtime.http.http_server import HttpServer
from service_runtime.settings.common import HttpSettings
from service_runtime.starting.start import CannotStart
from tests.waiting import wait_until

Serve = Callable[..., HttpServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Yields a function that starts servers. They are stopped after the test."""
    started: list[HttpServer] = []

    def start(app: Flask | None = None, **settings: object) -> HttpServer:
        server = _server(app or _an_app(), **settings)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def name_with_two_addresses(monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns a host name with the addresses 127.0.0.1 and ::1, like localhost on most machines."""
    _has_addresses(monkeypatch, (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
    return "two.test"


class _Requests:
    """An application whose responses wait until the test releases them."""

    def __init__(self) -> None:
        self.app = Flask(__name__)
        self.running = threading.Semaphore(0)
        self._may_end = threading.Event()
        self.app.get("/")(self._answer)

    def let_go(self) -> None:
        self._may_end.set()

    def _answer(self) -> str:
        self.running.release()
        assert self._may_end.wait(60)
        return "x" * 500_000


def test_a_server_that_stops_before_its_thread_runs_wakes_nobody_who_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is stopped before its thread runs does not wake a thread that has already ended.

    The thread runs both actions of `stop` as soon as it starts. The second action closes the trigger that wakes the
    thread.
    """
    server = _server(_an_app())
    trigger = server._listeners[0].trigger
    pull, may_run = trigger._physical_pull, threading.Event()
    serve = server._server.run
    ended: list[bool] = []

    def run_late() -> None:
        may_run.wait()
        serve()
        ended.append(True)

    def pull_late() -> None:
        """Delays the wake-up until the thread has run both actions, as on a machine under load."""
        if len(trigger.thunks) == 2:
            may_run.set()
            server._thread.join(0.5)
        pull()

    monkeypatch.setattr(server._thread, "_target", run_late)
    monkeypatch.setattr(trigger, "_physical_pull", pull_late)
    server.start()
    server.stop()
    assert ended == [True]


def test_requests_that_wait_for_a_thread_are_answered_although_the_server_stops(serve: Serve) -> None:
    requests = _Requests()
    server = serve(requests.app, http_threads=1)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(httpx.get, server.url, timeout=60) for _ in range(3)]
        assert requests.running.acquire(timeout=60)
        wait_until(lambda: len(server._server.task_dispatcher.queue) == 2)
        stopped = threads.submit(server.stop)
        requests.let_go()
        assert [answer.result(60).status_code for answer in asked] == [200] * 3
        stopped.result(60)


def test_a_request_that_runs_while_the_server_stops_is_answered_and_nobody_connects_any_more(serve: Serve) -> None:
    requests = _Requests()
    server = serve(requests.app)
    with ThreadPoolExecutor(2) as threads:
        asked = threads.submit(httpx.get, server.url, timeout=60)
        assert requests.running.acquire(timeout=60)
        stopped = threads.submit(server.stop)
        wait_until(lambda: not _accepts(server))
        assert not stopped.done()
        requests.let_go()
        answer = asked.result(60)
        assert (answer.status_code, len(answer.text), answer.headers["Connection"]) == (200, 500_000, "close")
        stopped.result(60)


def test_a_draining_server_serves_each_connection_once_more(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = serve(drain_s=0.01)
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert "Connection" not in client.get("/").headers
        server.drain()
        on_the_old_connection, on_a_new_one = client.get("/"), client.get("/")
    for response in (on_the_old_connection, on_a_new_one):
        assert (response.status_code, response.headers["Connection"]) == (200, "close")
    assert "requests are accepted for 0.01 s more" in caplog.text


def test_a_connection_that_is_kept_open_does_not_hold_the_stop_up(serve: Serve) -> None:
    server = serve(stop_timeout_s=3600)
    with httpx.Client(base_url=server.url, timeout=60) as client, ThreadPoolExecutor(1) as threads:
        client.get("/")
        threads.submit(server.stop).result(60)
    server._thread.join(60)
    assert not server._thread.is_alive()


def test_a_request_that_never_ends_is_cut_off_when_the_stop_time_out_is_over(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    requests = _Requests()
    server = serve(requests.app, stop_timeout_s=0.1)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(httpx.get, server.url, timeout=60)
        assert requests.running.acquire(timeout=60)
        server.stop()
        requests.let_go()
    assert "requests on 1 connections did not finish within 0.1 s" in caplog.text


def test_more_connections_than_threads_are_open_at_once(serve: Serve) -> None:
    """A request is not delayed by idle connections, even if there are more of them than threads."""
    server = serve()
    address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    idle = [socket.create_connection(address) for _ in range(150)]
    assert httpx.get(server.url, timeout=60).status_code == 200
    for connection in idle:
        connection.close()


def test_a_name_with_several_addresses_is_served_on_all_of_them(serve: Serve, name_with_two_addresses: str) -> None:
    server = serve(http_host=name_with_two_addresses)
    port = server.url.rpartition(":")[2]
    assert server.url == f"http://two.test:{port}"
    assert server.addresses == [f"127.0.0.1:{port}", f"[::1]:{port}"]
    assert [httpx.get(f"http://{address}/").status_code for address in server.addresses] == [200, 200]
    server.stop()
    server._thread.join(60)
    assert not server._thread.is_alive()


def test_an_address_that_the_machine_does_not_have_is_left_out_with_a_warning(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _has_addresses(monkeypatch, (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "2001:db8::7"))
    with caplog.at_level(logging.WARNING):
        server = serve(http_host="half.test")
    assert len(server.addresses) == 1
    assert "not listening on half.test's address 2001:db8::7, which this machine does not have" in caplog.text


def test_a_port_that_is_taken_on_one_of_the_addresses_is_said_and_nothing_stays_open(name_with_two_addresses: str) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=f"cannot listen on two.test:{port}: Address already in use"):
            _server(_an_app(), http_host=name_with_two_addresses, http_port=port)
        with socket.create_server(("127.0.0.1", port)):
            pass


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("no-such-host.invalid", "Name or service not known|Temporary failure in name resolution|No address associated"),
        ("2001:db8::7", "Cannot assign requested address"),
        ("a" * 64 + ".test", "label"),
        ("a..b", "label"),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_said_in_one_line(host: str, said: str) -> None:
    with pytest.raises(CannotStart, match=said) as raised:
        _server(_an_app(), http_host=host)
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(f"cannot listen on {host}:0: ")


def test_a_port_that_is_free_on_one_address_only_is_not_picked(
    name_with_two_addresses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen, attempts = socket.create_server, []

    def refuse_first(address: tuple[object, ...], *, family: socket.AddressFamily) -> socket.socket:
        attempts.append(family)
        if attempts == [socket.AF_INET, socket.AF_INET6]:
            raise OSError(98, "Address already in use")
        return listen(address, family=family)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_server", refuse_first)
    sockets = listening.listen_on(name_with_two_addresses, 0)
    assert len({opened.getsockname()[1] for opened in sockets}) == 1
    assert len(attempts) == 4
    for opened in sockets:
        opened.close()


def _server(app: Flask, **settings: object) -> HttpServer:
    """Returns a server on a free loopback port, with these settings. It may have fewer threads than a service."""
    return HttpServer(app, HttpSettings.model_construct(**{"http_port": 0, "http_threads": 4, **settings}), World())  # type: ignore[arg-type]


def _an_app() -> Flask:
    app = Flask(__name__)
    app.get("/")(lambda: "fine")
    return app


def _has_addresses(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[socket.AddressFamily, str]) -> None:
    resolve = socket.getaddrinfo

    def resolve_test_names(host: str, port: int, *rest: object, **named: object) -> object:
        if not host.endswith(".test"):
            return resolve(host, port, *rest, **named)  # type: ignore[arg-type]
        place = {socket.AF_INET: (port,), socket.AF_INET6: (port, 0, 0)}
        # As glibc does where a name stands in /etc/hosts twice.
        return [(family, socket.SOCK_STREAM, 6, "", (address, *place[family])) for family, address in [*addresses, addresses[0]]]

    monkeypatch.setattr(socket, "getaddrinfo", resolve_test_names)


def _accepts(server: HttpServer) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=5).close()
    except ConnectionError:
        return False
    return True
