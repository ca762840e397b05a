"""One attempt to place or to cancel an order.

The broker client gets it as the local transaction's argument, and whoever waits for the outcome reads it. Two threads know an
attempt: the one that runs the local transaction writes, the one that answers the caller reads, and after a time-out both are at
it at once. So what is known is one immutable value, replaced as a whole and only forward:

    NOT_STARTED --begin--> RUNNING --conclude--> any other outcome, for good
"""

from dataclasses import dataclass
from enum import Enum

from order_service.domain.order import Cancellation, Order

Wanted = Order | Cancellation
"""What a transaction is about."""


class Outcome(Enum):
    """How far the attempt has come, as far as the order service knows."""

    NOT_STARTED = "the broker did not store the half message, so the local transaction did not run"
    RUNNING = "the local transaction runs"
    STORED = "the local commit is done: order and transaction row are durable"
    AWAITING_PAYMENT = "the local commit is done, and the order awaits its payment: check-back will decide"
    REFUSED = "a rule refused the order"
    KEY_TAKEN = "another order has the idempotency key"
    NOT_CANCELLABLE = "the order is in no state in which it can be cancelled"
    DECIDED_BEFORE = "check-back had rolled the transaction back before the local transaction ran"
    UNAVAILABLE = "the database did not take it"
    UNKNOWN = "nobody knows whether the local commit happened; check-back will decide"


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of an attempt at one moment."""

    outcome: Outcome
    transaction_id: str | None = None
    reason: str = ""
    """Why a rule refused the order."""


class Attempt:
    """What is wanted, and how far its local transaction has come."""

    __slots__ = ("_progress", "wanted")

    def __init__(self, wanted: Wanted) -> None:
        """Not started."""
        self.wanted = wanted
        self._progress = Progress(Outcome.NOT_STARTED)

    @property
    def progress(self) -> Progress:
        """What is known now; for any thread. Take it once and decide by that: it may be another one a moment later."""
        return self._progress

    def begin(self, transaction_id: str) -> None:
        """The local transaction begins; only for the thread that runs it. Raises RuntimeError if it began before."""
        self._advance(Outcome.NOT_STARTED, Progress(Outcome.RUNNING, transaction_id))

    def conclude(self, outcome: Outcome, reason: str = "") -> None:
        """The local transaction ended; only for the thread that ran it. Raises RuntimeError unless it is running."""
        self._advance(Outcome.RUNNING, Progress(outcome, self._progress.transaction_id, reason))

    def _advance(self, expected: Outcome, progress: Progress) -> None:
        if self._progress.outcome is not expected:
            raise RuntimeError(f"an attempt that is {self._progress.outcome.name} cannot become {progress.outcome.name}")
        self._progress = progress
