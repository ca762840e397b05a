"""The HTTP server that Prometheus scrapes (RocketMQ 5's metricsPromExporterPort)."""

from collections import deque
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, start_http_server
from prometheus_client.registry import Collector

REQUEST_TIMEOUT_S: Final = 10
"""The time in seconds after which the server closes the connection of a stalled scraper."""
MAX_CONNECTIONS: Final = 32
"""The maximum number of connections. Each connection has a thread.

A further connection closes the oldest one. This is rarely noticed, because a scrape takes only milliseconds.
"""
_SHUT_RDWR: Final = 2
"""The value of socket.SHUT_RDWR, which ends reads and writes of the connection immediately."""


class MetricsServer:
    """A multi-threaded HTTP server for the metrics. It runs until `stop` is called."""

    def __init__(self, host: str, port: int, collector: Collector) -> None:
        """Starts the server. If `port` is 0, selects a free port. Raises OSError if the address cannot be used."""
        registry = CollectorRegistry()
        registry.register(collector)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._server, self._thread = start_http_server(port, host, registry)
        handler = self._server.RequestHandlerClass
        assert isinstance(handler, type)
        self._server.RequestHandlerClass = type("TimedHandler", (handler,), {"timeout": REQUEST_TIMEOUT_S})
        self._open: deque[Any] = deque()
        self._server.verify_request = self._make_room  # type: ignore[assignment, method-assign]
        self.host = host
        self.port = int(self._server.server_address[1])

    def stop(self) -> None:
        """Stops the server. Blocks for up to half a second."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _make_room(self, connection: Any, _address: object) -> bool:
        """Closes the oldest connection if there are too many. Called by the accepting thread before it starts another thread."""
        self._open = deque(earlier for earlier in self._open if earlier.fileno() >= 0)
        self._open.append(connection)
        if len(self._open) > MAX_CONNECTIONS:
            _shut_down(self._open.popleft())
        return True


def _shut_down(connection: Any) -> None:
    try:
        connection.shutdown(_SHUT_RDWR)
    except OSError:
        return  # It is already closed.
