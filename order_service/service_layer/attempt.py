"""One attempt to place or to cancel an order.

The broker client passes it to the local transaction as argument; the thread that waits for the outcome reads it. Two threads use
an attempt: one runs the local transaction and writes, one answers the caller and reads, and after a time-out both do so at once.
So its progress is one immutable value, replaced as a whole and only forward:

    NOT_STARTED --begin--> RUNNING --conclude--> any other outcome, for good
"""

from dataclasses import dataclass
from enum import Enum

from order_service.domain.order import Cancellation, Order

Wanted = Order | Cancellation
"""What a transaction is about."""


class Outcome(Enum):
    """The progress of the attempt, as far as the order service knows."""

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
    """The state of an attempt at one moment."""

    outcome: Outcome
    transaction_id: str | None = None
    reason: str = ""
    """Why a rule refused the order."""


class Attempt:
    """The wanted order or cancellation, and the progress of its local transaction."""

    __slots__ = ("_progress", "wanted")

    def __init__(self, wanted: Wanted) -> None:
        """Creates an attempt that has not started."""
        self.wanted = wanted
        self._progress = Progress(Outcome.NOT_STARTED)

    @property
    def progress(self) -> Progress:
        """The present progress; for any thread. Read it once and decide by that: it may change a moment later."""
        return self._progress

    def begin(self, transaction_id: str) -> None:
        """Begins the local transaction; only for the thread that runs it. Raises RuntimeError if it began before."""
        self._advance(Outcome.NOT_STARTED, Progress(Outcome.RUNNING, transaction_id))

    def conclude(self, outcome: Outcome, reason: str = "") -> None:
        """Ends the local transaction; only for the thread that ran it. Raises RuntimeError unless it is running."""
        self._advance(Outcome.RUNNING, Progress(outcome, self._progress.transaction_id, reason))

    def _advance(self, expected: Outcome, progress: Progress) -> None:
        if self._progress.outcome is not expected:
            raise RuntimeError(f"an attempt that is {self._progress.outcome.name} cannot become {progress.outcome.name}")
        self._progress = progress
