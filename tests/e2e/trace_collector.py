"""Receives traces over OTLP, like an OpenTelemetry collector."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(ThreadingHTTPServer):
    """A server that stores the service and the name of each span, by trace."""

    def __init__(self) -> None:
        """Listens on a free port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self._spans: dict[bytes, set[tuple[str, str]]] = defaultdict(set)
        self._lock = threading.Lock()

    def take(self, body: bytes) -> None:
        """Adds the spans of a request."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = next(pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name")
            with self._lock:
                for span in (span for scope in resource.scope_spans for span in scope.spans):
                    self._spans[span.trace_id].add((service, _short(span.name)))

    def traces(self) -> list[set[tuple[str, str]]]:
        """Returns the spans of each trace."""
        with self._lock:
            return [set(spans) for spans in self._spans.values()]


@contextmanager
def running_collector() -> Iterator[Collector]:
    """Yields a collector that receives traces during the block."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        cast(Collector, self.server).take(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _short(name: str) -> str:
    """Returns the span's name without the folder of the database, which differs between machines."""
    verb, _, database = name.partition(" ")
    return f"{verb} {database.rpartition('/')[2]}" if database.endswith(".db") else name
