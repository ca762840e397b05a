import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rocketmq_broker.message import Message
from service_runtime.observing import context
from service_runtime.observing.context import carried_properties, logging_about, span_about


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Returns the exporter of the recorded spans. Tracing is on, without a global provider."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(context.trace, "get_tracer_provider", lambda: provider)
    return exporter


def a_message() -> Message:
    return Message.of("orders", b"", user_properties=carried_properties())


def test_without_tracing_a_message_carries_nothing_and_a_span_costs_nothing() -> None:
    assert carried_properties() == {}
    with span_about([a_message()], "work"):
        assert carried_properties() == {}


def test_a_message_carries_request_and_trace_on(spans: InMemorySpanExporter) -> None:
    with logging_about(request_id="r1"), span_about([], "request"):
        message = a_message()
        assert {"requestId", "traceparent"} <= message.properties.keys()
    with span_about([message], "consume"):
        pass
    request, consume = spans.get_finished_spans()
    assert consume.context.trace_id == request.context.trace_id
    assert consume.parent is not None
    assert consume.parent.span_id == request.context.span_id


def test_a_batch_goes_on_with_the_first_trace_and_links_to_the_others(spans: InMemorySpanExporter) -> None:
    messages = []
    for name in ("first", "second"):
        with span_about([], name):
            messages.append(a_message())
    with span_about([*messages, Message.of("orders", b"")], "credit orders"):
        pass
    first, second, batch = spans.get_finished_spans()
    assert batch.context.trace_id == first.context.trace_id
    assert [link.context.span_id for link in batch.links] == [second.context.span_id]


@pytest.mark.parametrize("traceparent", ["x", "00-0-0-00", "ÿ" * 10_000])
def test_what_a_stranger_writes_as_a_trace_begins_a_new_one(spans: InMemorySpanExporter, traceparent: str) -> None:
    with span_about([Message.of("orders", b"", user_properties={"traceparent": traceparent})], "consume"):
        pass
    (span,) = spans.get_finished_spans()
    assert span.parent is None
