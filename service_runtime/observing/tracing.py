"""Records OpenTelemetry traces across services, from an HTTP request to the rows that it writes. Off by default.

    POST /orders ── execute_local_transaction ── SQL of the order database
        └─ message, property traceparent ── a consumer's span ── Celery task ── SQL of the credit database

A batch of messages belongs to several traces: its span continues the first message's trace and links to the others. `trace_setup`
enables traces; without it this module does nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from opentelemetry import propagate, trace

from service_runtime.observing.log_context import request_properties

_NAME: Final = "service_runtime"


class Carried(Protocol):
    """A message that may carry a trace."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The message's properties; with `traceparent` if the sender was traced."""


def carried_properties() -> dict[str, str]:
    """Returns the user properties with the current request id and trace, if any."""
    carried = request_properties()
    if _is_on():
        propagate.inject(carried)
    return carried


@contextmanager
def span_about(messages: Sequence[Carried], name: str) -> Iterator[None]:
    """Opens a span that continues the first message's trace and links to the traces of the others."""
    if not _is_on():
        yield
        return
    parents = [propagate.extract(message.properties) for message in messages]
    contexts = [trace.get_current_span(parent).get_span_context() for parent in parents[1:]]
    links = [trace.Link(context) for context in contexts if context.is_valid]
    with trace.get_tracer(_NAME).start_as_current_span(name, parents[0] if parents else None, links=links):
        yield


def _is_on() -> bool:
    """Returns True if spans are exported. Otherwise creating them would waste time."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
