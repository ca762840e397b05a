"""Switches OpenTelemetry traces on, in a process that is asked to.

Where they are sent is said by OpenTelemetry's own variables, OTEL_EXPORTER_OTLP_ENDPOINT and its like. The libraries are imported
by the functions: that takes half a second, which a service without traces need not wait for at its start.
"""

from collections.abc import Callable

from flask import Flask
from opentelemetry import trace
from sqlalchemy import Engine


def start_tracing(service: str) -> Callable[[], None]:
    """From now on spans are recorded and sent; returns what ends that, and sends what is left."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def trace_requests(app: Flask) -> None:
    """A span for each request, but for health checks and metrics."""
    from opentelemetry.instrumentation.flask import FlaskInstrumentor

    FlaskInstrumentor().instrument_app(  # type: ignore[no-untyped-call]
        app, excluded_urls="livez,readyz,healthz,metrics"
    )


def trace_database(engine: Engine) -> None:
    """A span for each statement, with its text and without its values."""
    from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor

    # It asks for SQLAlchemy before 2.1, and works with it: tests/e2e/test_traces.py.
    SQLAlchemyInstrumentor().instrument(engine=engine, skip_dep_check=True)


def trace_tasks() -> None:
    """A span for each Celery task of this process, where it is sent and where it is worked on."""
    from opentelemetry.instrumentation.celery import CeleryInstrumentor

    CeleryInstrumentor().instrument()  # type: ignore[no-untyped-call]
