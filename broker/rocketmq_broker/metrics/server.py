"""The HTTP port that Prometheus scrapes (RocketMQ 5's metricsPromExporterPort)."""

from __future__ import annotations

import threading
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, start_http_server
from prometheus_client.registry import Collector

REQUEST_TIMEOUT_S: Final = 10
"""Seconds after which the server closes the connection of a stalled scraper."""
MAX_CONNECTIONS: Final = 32
"""Connections, each with a thread. One more closes the oldest: a scrape takes milliseconds."""

_BOTH_WAYS: Final = 2
"""SHUT_RDWR: reads and writes of the connection end at once."""


class MetricsServer:
    """An HTTP server on threads; `stop` ends them."""

    def __init__(self, host: str, port: int, collector: Collector) -> None:
        """Answers when it returns; port 0 takes any free port. Raises OSError if the address cannot be used."""
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
        """Stops answering. Blocks for up to half a second."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Bounded:
    """An addition to a request handler: a time limit for each byte, and a bound on the number of connections."""

    timeout = REQUEST_TIMEOUT_S
    connection: Any
    open: dict[int, Any]
    """Connections by handler, the oldest first."""
    lock: threading.Lock

    def setup(self) -> None:
        """Registers the connection; closes the oldest one if there are too many."""
        super().setup()  # type: ignore[misc]
        with self.lock:
            self.open[id(self)] = self.connection
            oldest = self.open.pop(next(iter(self.open))) if len(self.open) > MAX_CONNECTIONS else None
        if oldest is not None:
            _hang_up(oldest)

    def finish(self) -> None:
        """Removes the connection."""
        with self.lock:
            self.open.pop(id(self), None)
        super().finish()  # type: ignore[misc]


def _hang_up(connection: Any) -> None:
    try:
        connection.shutdown(_BOTH_WAYS)
    except OSError:
        return  # it is already closed
