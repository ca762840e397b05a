"""Enables OpenTelemetry traces.

OpenTelemetry's variables, such as OTEL_EXPORTER_OTLP_ENDPOINT, configure the exporter. The libraries are imported inside the
functions, so that a service without traces saves the half second that the imports take.
"""

from collections.abc import Callable

from flask import Flask
from opentelemetry import trace
from sqlalchemy import Engine


def start_tracing(service: str) -> Callable[[], None]:
    """Starts recording and exporting spans. Returns a function that exports the remaining spans and stops."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def trace_requests(app: Flask) -> None:
    """Records a span for each request, except health checks and metrics."""
    from opentelemetry.instrumentation.flask import FlaskInstrumentor

    FlaskInstrumentor().instrument_app(  # type: ignore[no-untyped-call]
        app, excluded_urls="livez,readyz,healthz,metrics"
    )


def trace_database(engine: Engine) -> None:
    """Records a span for each SQL statement, with its text but without its values."""
    from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

    # The package requires SQLAlchemy < 2.1, but works with 2.1: see tests/e2e/test_whole_shop.py.
    SQLAlchemyInstrumentor().instrument(engine=engine, skip_dep_check=True)


def trace_tasks() -> None:
    """Records a span for each Celery task that this process sends or runs."""
    from opentelemetry.instrumentation.celery import CeleryInstrumentor

    CeleryInstrumentor().instrument()  # type: ignore[no-untyped-call]
