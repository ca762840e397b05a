"""One trace from POST to the rows in both databases, collected as an OpenTelemetry collector would."""

import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from demo.system import System
from tests.dead_proxies import DEAD_PROXIES
from tests.e2e.clients import PATIENT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


class Collector(ThreadingHTTPServer):
    """Takes traces over OTLP: service and name of each span, by trace."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: dict[bytes, set[tuple[str, str]]] = defaultdict(set)
        self.lock = threading.Lock()

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = next(pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name")
            with self.lock:
                for span in (span for scope in resource.scope_spans for span in scope.spans):
                    self.spans[span.trace_id].add((service, _short(span.name)))

    def traces(self) -> list[set[tuple[str, str]]]:
        with self.lock:
            return [set(spans) for spans in self.spans.values()]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        cast(Collector, self.server).take(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _short(name: str) -> str:
    """The span of a statement is named by its verb and its database, whose path is the machine's own."""
    verb, _, database = name.partition(" ")
    return f"{verb} {database.rpartition('/')[2]}" if database.endswith(".db") else name


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


EXPECTED = {
    ("order_service", "POST /orders"),
    ("order_service", "execute_local_transaction"),
    ("order_service", "INSERT orders.db"),
    ("credit_service", "credit orders"),
    ("credit_service", "apply_async/credit_service.credit_orders"),
    ("credit_service.worker", "run/credit_service.credit_orders"),
    ("credit_service.worker", "INSERT credits.db"),
}


def test_an_order_is_one_trace_from_the_request_to_the_credit_row(system: System, collector: Collector) -> None:
    system.order_service.environment["ORDER_SEND_TIMEOUT_MS"] = str(PATIENT["send_timeout_ms"])
    for process in (system.order_service, system.credit_service, system.worker):
        process.environment |= {
            "TRACES_ENABLED": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            **DEAD_PROXIES,
        }
    system.start()
    order = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 250}]}
    assert httpx.post(f"{system.order_url}/orders", json=order, timeout=60).status_code == 201
    deadline = time.monotonic() + 60
    while not any(trace >= EXPECTED for trace in collector.traces()):
        assert time.monotonic() < deadline, collector.traces()
        time.sleep(0.2)
    with sqlite3.connect(system.credit_database_url.removeprefix("sqlite:///")) as database:
        assert database.execute("SELECT count(*) FROM credits").fetchone() == (1,)
