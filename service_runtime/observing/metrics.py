"""Prometheus metrics of a service at /metrics of its HTTP port. Off by default."""

from collections.abc import Callable
from typing import Final

from flask import Flask, Response, g, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

_NO_ROUTE: Final = "none"
"""The label of requests that match no route. Their paths are not used, because they are unbounded."""


def new_metrics() -> CollectorRegistry:
    """Returns a registry with the metrics of the process: CPU, memory, open files, garbage collection."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


def serve_metrics(app: Flask, registry: CollectorRegistry, now_s: Callable[[], float]) -> None:
    """Adds /metrics to the application. Counts requests by method, route and status, and measures them by method and route."""
    requests = Counter("http_requests", "Answered requests.", ["method", "route", "status"], registry=registry)
    durations = Histogram(
        "http_request_duration_seconds", "Time from the request to its response.", ["method", "route"], registry=registry
    )

    def begin() -> None:
        g.began_s = now_s()

    def count(response: Response) -> Response:
        route = request.url_rule.rule if request.url_rule else _NO_ROUTE
        method = request.method if request.url_rule else _NO_ROUTE
        requests.labels(method, route, str(response.status_code)).inc()
        began_s: float | None = g.pop("began_s", None)
        if began_s is not None:
            durations.labels(method, route).observe(now_s() - began_s)
        return response

    app.add_url_rule("/metrics", "metrics", lambda: Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST))
    app.before_request(begin)
    app.after_request(count)
