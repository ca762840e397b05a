"""What a log line is about: request, order and transaction, added to each line that is logged meanwhile.

    HTTP request ── X-Request-Id ──> message, property requestId ──> check-backs and consumers of every group

So one id finds the lines of all services about what one request began.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final, Protocol

REQUEST_ID: Final = "requestId"
"""The user property of a message that carries the id of the request."""
_LONGEST_ID: Final = 100

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_ids: ContextVar[Mapping[str, str]] = ContextVar("ids of log lines", default=_NOTHING)


class Identified(Protocol):
    """A message, as far as log lines name it."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys, of which the first is the order id."""

    @property
    def transaction_id(self) -> str | None:
        """The id of its transaction."""


def current_ids() -> Mapping[str, str]:
    """The ids of whatever is worked on in this thread or task."""
    return _ids.get()


@contextmanager
def logging_about(**ids: str | None) -> Iterator[None]:
    """Adds these ids to the lines that are logged in the block; None adds nothing."""
    known = {name: value[:_LONGEST_ID] for name, value in ids.items() if value}
    token = _ids.set({**_ids.get(), **known})
    try:
        yield
    finally:
        _ids.reset(token)


def logging_about_message(message: Identified) -> AbstractContextManager[None]:
    """See `logging_about`: request, order and transaction of a message."""
    return logging_about(
        request_id=message.properties.get(REQUEST_ID),
        order_id=next(iter(message.keys), None),
        transaction_id=message.transaction_id,
    )


def request_properties() -> dict[str, str]:
    """The user properties by which a message carries the current request on; none outside a request."""
    request_id = _ids.get().get("request_id")
    return {REQUEST_ID: request_id} if request_id else {}
