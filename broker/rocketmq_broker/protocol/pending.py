"""The requests that wait for their answers, by opaque and with a deadline (RocketMQ's responseTable)."""

from typing import Final, Generic, TypeVar

from rocketmq_broker.protocol.errors import ProtocolError

Waiter = TypeVar("Waiter")

MAX_PENDING: Final = 65_535
"""The number of requests that an Apache client lets wait on its connections."""

_MAX_OPAQUE: Final = 2**31 - 1


class TooManyPending(ProtocolError):
    """One more request than may wait for an answer."""


class PendingRequests(Generic[Waiter]):
    """A table of waiters by opaque. A waiter stays until its answer comes, is late, or is given up."""

    def __init__(self, limit: int = MAX_PENDING) -> None:
        """At most `limit` requests wait at a time."""
        self._limit = limit
        self._waiting: dict[int, tuple[Waiter, int]] = {}
        self._next_opaque = 0

    def __len__(self) -> int:
        """Returns the number of waiting requests."""
        return len(self._waiting)

    def next_opaque(self) -> int:
        """Returns an opaque that no waiting request has. A one-way request needs nothing more."""
        opaque = self._next_opaque
        while opaque in self._waiting:
            opaque = (opaque + 1) & _MAX_OPAQUE
        self._next_opaque = (opaque + 1) & _MAX_OPAQUE
        return opaque

    def add(self, waiter: Waiter, deadline_ms: int) -> int:
        """Stores the waiter for a new request until the deadline. Returns the request's opaque.

        Raises TooManyPending.
        """
        if len(self._waiting) >= self._limit:
            raise TooManyPending(f"{self._limit} requests wait for their answers already")
        opaque = self.next_opaque()
        self._waiting[opaque] = (waiter, deadline_ms)
        return opaque

    def take(self, opaque: int) -> Waiter | None:
        """Removes and returns the waiter for this answer; None if nobody waits for it."""
        entry = self._waiting.pop(opaque, None)
        return entry[0] if entry is not None else None

    def take_expired(self, now_ms: int) -> list[Waiter]:
        """Removes and returns all waiters whose deadline is reached."""
        late = [opaque for opaque, (_, deadline_ms) in self._waiting.items() if deadline_ms <= now_ms]
        return [self._waiting.pop(opaque)[0] for opaque in late]

    def take_all(self) -> list[Waiter]:
        """Removes and returns all waiters, at the end of their connection."""
        waiters = [waiter for waiter, _ in self._waiting.values()]
        self._waiting.clear()
        return waiters

    def earliest_deadline_ms(self) -> int | None:
        """Returns the earliest deadline; None if none waits."""
        return min((deadline_ms for _, deadline_ms in self._waiting.values()), default=None)
