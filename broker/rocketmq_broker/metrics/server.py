"""The HTTP server that Prometheus scrapes (RocketMQ 5's metricsPromExporterPort)."""

from __future__ import annotations

import threading
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, start_http_server
from prometheus_client.registry import Collector

REQUEST_TIMEOUT_S: Final = 10
"""The time in seconds after which the server closes the connection of a stalled scraper."""
MAX_CONNECTIONS: Final = 32
"""The maximum number of connections, each with a thread.

A further connection closes the oldest one, because a scrape takes only milliseconds.
"""

_SHUT_RDWR: Final = 2
"""The value of socket.SHUT_RDWR, which ends reads and writes of the connection immediately."""


class MetricsServer:
    """A multi-threaded HTTP server. `stop` ends its threads."""

    def __init__(self, host: str, port: int, collector: Collector) -> None:
        """Starts the server. Port 0 selects a free port. Raises OSError if the address cannot be used."""
        registry = CollectorRegistry()
        registry.register(collector)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._server, self._thread = start_http_server(port, host, registry)
        handler = self._server.RequestHandlerClass
        assert isinstance(handler, type)
        self._server.RequestHandlerClass = type("TimedHandler", (_Bounded, handler), {"open": {}, "lock": threading.Lock()})
        self.host = host
        self.port = int(self._server.server_address[1])

    def stop(self) -> None:
        """Stops the server. Blocks for up to half a second."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Bounded:
    """A mixin for a request handler that limits the time between bytes and the number of connections."""

    timeout = REQUEST_TIMEOUT_S
    connection: Any
    open: dict[int, Any]
    """Maps the id of each handler to its connection, oldest first."""
    lock: threading.Lock

    def setup(self) -> None:
        """Registers the connection. Closes the oldest connection if there are too many."""
        super().setup()  # type: ignore[misc]
        with self.lock:
            self.open[id(self)] = self.connection
            oldest = self.open.pop(next(iter(self.open))) if len(self.open) > MAX_CONNECTIONS else None
        if oldest is not None:
            _shut_down(oldest)

    def finish(self) -> None:
        """Removes the connection."""
        with self.lock:
            self.open.pop(id(self), None)
        super().finish()  # type: ignore[misc]


def _shut_down(connection: Any) -> None:
    try:
        connection.shutdown(_SHUT_RDWR)
    except OSError:
        return  # it is already closed
