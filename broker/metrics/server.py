"""The HTTP port that Prometheus scrapes (RocketMQ 5's metricsPromExporterPort)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, start_http_server
from prometheus_client.registry import Collector

REQUEST_TIMEOUT_S = 10
"""A scraper that stalls longer is hung up on."""


class MetricsServer:
    """Answers on threads of its own; `stop` ends them."""

    def __init__(self, host: str, port: int, collector: Collector) -> None:
        """Answers when it returns; port 0 takes any that is free. Raises OSError if the address cannot be had."""
        registry = CollectorRegistry()
        registry.register(collector)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._server, self._thread = start_http_server(port, host, registry)
        handler = self._server.RequestHandlerClass
        assert isinstance(handler, type)
        self._server.RequestHandlerClass = type("TimedHandler", (handler,), {"timeout": REQUEST_TIMEOUT_S})
        self.host = host
        self.port = int(self._server.server_address[1])

    def stop(self) -> None:
        """Answers no more. Blocks for up to half a second."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
