"""Requests that wait for their answers: which opaque leads to whom, and until when (RocketMQ's responseTable)."""

from typing import Final, Generic, TypeVar

from rocketmq_broker.protocol.errors import ProtocolError

Waiter = TypeVar("Waiter")

MAX_PENDING: Final = 65_535
"""As many requests as an Apache client lets wait on its connections."""

_MAX_OPAQUE: Final = 2**31 - 1


class TooManyPending(ProtocolError):
    """No further request may wait for an answer now."""


class PendingRequests(Generic[Waiter]):
    """Gives requests their opaque and keeps whoever waits for the answer, until it comes, is late, or is given up."""

    def __init__(self, limit: int = MAX_PENDING) -> None:
        """At most `limit` requests wait at a time."""
        self._limit = limit
        self._waiting: dict[int, tuple[Waiter, int]] = {}
        self._next_opaque = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def next_opaque(self) -> int:
        """An opaque that no waiting request has; enough for one that nobody waits for."""
        opaque = self._next_opaque
        while opaque in self._waiting:
            opaque = (opaque + 1) & _MAX_OPAQUE
        self._next_opaque = (opaque + 1) & _MAX_OPAQUE
        return opaque

    def add(self, waiter: Waiter, deadline_ms: int) -> int:
        """The opaque of a new request, whose answer is for `waiter` if it comes before the deadline.

        Raises TooManyPending.
        """
        if len(self._waiting) >= self._limit:
            raise TooManyPending(f"{self._limit} requests wait for their answers already")
        opaque = self.next_opaque()
        self._waiting[opaque] = (waiter, deadline_ms)
        return opaque

    def take(self, opaque: int) -> Waiter | None:
        """Who waits for this answer; None if nobody does, or no longer."""
        entry = self._waiting.pop(opaque, None)
        return entry[0] if entry is not None else None

    def take_expired(self, now_ms: int) -> list[Waiter]:
        """All whose deadline is reached."""
        late = [opaque for opaque, (_, deadline_ms) in self._waiting.items() if deadline_ms <= now_ms]
        return [self._waiting.pop(opaque)[0] for opaque in late]

    def take_all(self) -> list[Waiter]:
        """All of them: the connection is gone."""
        waiters = [waiter for waiter, _ in self._waiting.values()]
        self._waiting.clear()
        return waiters

    def earliest_deadline_ms(self) -> int | None:
        """When the first of them is late; None if none waits."""
        return min((deadline_ms for _, deadline_ms in self._waiting.values()), default=None)
