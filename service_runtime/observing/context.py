"""Adds the ids of the current request, order and transaction to log lines, and records OpenTelemetry traces across services.

    HTTP request ── X-Request-Id ──> message, property requestId ──> check-backs and consumers of every group

The log lines of all services about a request therefore contain the same id.

    POST /orders ── execute_local_transaction ── SQL of the order database
        └─ message, property traceparent ── a consumer's span ── inbox ── a worker's span ── SQL of the credit database

Traces are off by default. A batch of messages belongs to several traces: its span continues the first message's trace and links
to the others. `trace_setup` enables traces; without it, `span_about` does nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final, Protocol

from opentelemetry import propagate, trace

REQUEST_ID: Final = "requestId"
"""The user property of a message that contains the request id."""
_MAX_ID_LENGTH: Final = 100

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_ids: ContextVar[Mapping[str, str]] = ContextVar("ids of log lines", default=_NOTHING)


class Identified(Protocol):
    """The interface of a message that provides the ids."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The message's properties; with `traceparent` if the sender was traced."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The message's keys; the first one is the order id."""

    @property
    def transaction_id(self) -> str | None:
        """The message's transaction id."""


def current_ids() -> Mapping[str, str]:
    """Returns the ids that are added to the log lines of the current context."""
    return _ids.get()


@contextmanager
def logging_about(**ids: str | None) -> Iterator[None]:
    """Adds these ids to the log lines of the block. Ignores None."""
    known = {name: value[:_MAX_ID_LENGTH] for name, value in ids.items() if value}
    token = _ids.set({**_ids.get(), **known})
    try:
        yield
    finally:
        _ids.reset(token)


def logging_about_message(message: Identified) -> AbstractContextManager[None]:
    """Adds the request, order and transaction ids of a message to the log lines of the block."""
    return logging_about(
        request_id=message.properties.get(REQUEST_ID),
        order_id=next(iter(message.keys), None),
        transaction_id=message.transaction_id,
    )


def carried_properties() -> dict[str, str]:
    """Returns the user properties that carry the current request id and trace, if any."""
    request_id = _ids.get().get("request_id")
    carried = {REQUEST_ID: request_id} if request_id else {}
    if _is_on():
        propagate.inject(carried)
    return carried


@contextmanager
def span_about(messages: Sequence[Identified], name: str) -> Iterator[None]:
    """Opens a span that continues the first message's trace and links to the traces of the others."""
    if not _is_on():
        yield
        return
    parents = [propagate.extract(message.properties) for message in messages]
    contexts = [trace.get_current_span(parent).get_span_context() for parent in parents[1:]]
    links = [trace.Link(context) for context in contexts if context.is_valid]
    with trace.get_tracer("service_runtime").start_as_current_span(name, parents[0] if parents else None, links=links):
        yield


def _is_on() -> bool:
    """Returns True if spans are exported. If not, no spans are created, to save time."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
