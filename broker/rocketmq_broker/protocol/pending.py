"""The requests that wait for their responses, keyed by opaque and with deadlines (RocketMQ's responseTable)."""

from typing import Final, Generic, TypeVar

from rocketmq_broker.protocol.errors import ProtocolError

Waiter = TypeVar("Waiter")

MAX_PENDING: Final = 65_535
"""The default maximum number of requests that wait for a response. Apache's client has the same limit."""

_MAX_OPAQUE: Final = 2**31 - 1


class TooManyPending(ProtocolError):
    """Raised if the maximum number of requests already wait for a response."""


class PendingRequests(Generic[Waiter]):
    """A table of the objects that wait for responses, called waiters, keyed by opaque.

    A waiter is removed when its response arrives, when its deadline is reached, or when the connection ends.
    """

    def __init__(self, limit: int = MAX_PENDING) -> None:
        """Creates an empty table for at most `limit` waiting requests."""
        self._limit = limit
        self._waiting: dict[int, tuple[Waiter, int]] = {}
        self._next_opaque = 0

    def __len__(self) -> int:
        """Returns the number of waiting requests."""
        return len(self._waiting)

    def next_opaque(self) -> int:
        """Returns an opaque that no waiting request uses. A one-way request takes its opaque directly from this method."""
        opaque = self._next_opaque
        while opaque in self._waiting:
            opaque = (opaque + 1) & _MAX_OPAQUE
        self._next_opaque = (opaque + 1) & _MAX_OPAQUE
        return opaque

    def add(self, waiter: Waiter, deadline_ms: int) -> int:
        """Adds the waiter of a new request, with a deadline. Returns the request's opaque.

        Raises TooManyPending.
        """
        if len(self._waiting) >= self._limit:
            raise TooManyPending(f"too many requests are waiting for a response: at most {self._limit}")
        opaque = self.next_opaque()
        self._waiting[opaque] = (waiter, deadline_ms)
        return opaque

    def take(self, opaque: int) -> Waiter | None:
        """Removes and returns the waiter for the response with this opaque. Returns None if there is none."""
        entry = self._waiting.pop(opaque, None)
        return entry[0] if entry is not None else None

    def take_expired(self, now_ms: int) -> list[Waiter]:
        """Removes and returns all waiters that have reached their deadlines."""
        late = [opaque for opaque, (_, deadline_ms) in self._waiting.items() if deadline_ms <= now_ms]
        return [self._waiting.pop(opaque)[0] for opaque in late]

    def take_all(self) -> list[Waiter]:
        """Removes and returns all waiters. Call it when their connection ends."""
        waiters = [waiter for waiter, _ in self._waiting.values()]
        self._waiting.clear()
        return waiters

    def earliest_deadline_ms(self) -> int | None:
        """Returns the earliest deadline, or None if no request waits."""
        return min((deadline_ms for _, deadline_ms in self._waiting.values()), default=None)
