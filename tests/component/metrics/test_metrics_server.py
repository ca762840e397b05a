import http.client
import socket
import threading
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rocketmq_broker.metrics import MetricsServer
from rocketmq_broker.metrics import server as metrics_server


class OneFigure(Collector):
    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("one_figure", "One.", value=42)


def test_it_answers_until_it_is_stopped_and_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    server = MetricsServer("127.0.0.1", 0, OneFigure())
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert (answer.status, b"one_figure 42.0" in answer.read()) == (200, True)
    connection.close()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", server.port, timeout=10).request("GET", "/metrics")
    assert [thread for thread in threading.enumerate() if thread not in before and not thread.daemon] == []


def test_a_port_in_use_is_an_error_and_nothing_is_left_running() -> None:
    server = MetricsServer("127.0.0.1", 0, OneFigure())
    try:
        with pytest.raises(OSError, match="in use"):
            MetricsServer("127.0.0.1", server.port, OneFigure())
    finally:
        server.stop()


def test_connections_that_ask_nothing_make_room_for_scrapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle connections beyond the maximum are closed, oldest first, so that a scrape is still served.

    The test opens few connections, because they must fit into the backlog of the listening socket.
    """
    monkeypatch.setattr(metrics_server, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(metrics_server, "REQUEST_TIMEOUT_S", 600)
    server = MetricsServer("127.0.0.1", 0, OneFigure())
    lying = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
    for one in lying:
        one.sendall(b"GET /met")
        one.settimeout(120)
    assert [one.recv(1) for one in lying[:2]] == [b"", b""], "the two oldest made room"
    assert b"one_figure" in urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=120).read()
    assert lying[2].recv(1) == b"", "the oldest made room for the scrape"
    for one in lying:
        one.close()
    server.stop()
