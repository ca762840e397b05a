"""One attempt to place or to cancel an order.

The broker client passes it to the local transaction as argument; the thread that waits for the outcome reads it. Two threads use
an attempt: one runs the local transaction and writes, one answers the caller and reads, and after a time-out both do so at once.
So its progress is one immutable value, replaced as a whole and only forward:

    NOT_STARTED --begin--> RUNNING --conclude--> any other outcome, for good
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from order_messages.states import TransactionState
from order_service.domain.order import Cancellation, Order
from rocketmq_broker.client import LocalTransactionState
from service_runtime.http.problem import KnowsItsProblem, Problem

Wanted = Order | Cancellation
"""The subject of a transaction."""


DECISION_OF: Final = {
    TransactionState.COMMITTED: LocalTransactionState.COMMIT_MESSAGE,
    TransactionState.ROLLED_BACK: LocalTransactionState.ROLLBACK_MESSAGE,
    TransactionState.PENDING: LocalTransactionState.UNKNOWN,
    TransactionState.UNKNOWN: LocalTransactionState.UNKNOWN,
}
"""The decision for the broker in each state of a transaction: after its local transaction, and at each check-back."""

_ROLLED_BACK: Final = TransactionState.ROLLED_BACK


class Outcome(Enum):
    """The progress of the attempt, as far as the order service knows, and its consequences in one table.

    Each has a meaning in words, the state of the transaction, which determines the decision for the broker, and, if nothing was
    done, the problem for the caller.
    """

    NOT_STARTED = (
        "the broker did not store the half message, so the local transaction did not run",
        _ROLLED_BACK,
        Problem(503, "Broker unavailable"),
    )
    RUNNING = "the local transaction runs", TransactionState.UNKNOWN
    STORED = "the local commit is done: order and transaction row are durable", TransactionState.COMMITTED
    AWAITING_PAYMENT = (
        "the local commit is done, and the order awaits its payment: check-back will decide",
        TransactionState.PENDING,
    )
    REFUSED = "a rule refused the order", _ROLLED_BACK, Problem(409, "Order refused")
    KEY_TAKEN = "another order has the idempotency key", _ROLLED_BACK, Problem(503, "Database unavailable")
    NOT_CANCELLABLE = (
        "the order is in no state in which it can be cancelled",
        _ROLLED_BACK,
        Problem(409, "Not possible in this state"),
    )
    DECIDED_BEFORE = (
        "check-back had rolled the transaction back before the local transaction ran",
        _ROLLED_BACK,
        Problem(503, "Transaction expired"),
    )
    UNAVAILABLE = "the database did not take it", _ROLLED_BACK, Problem(503, "Database unavailable")
    UNKNOWN = "nobody knows whether the local commit happened; check-back will decide", TransactionState.UNKNOWN

    def __init__(self, meaning: str, state: TransactionState, problem: Problem | None = None) -> None:
        """Takes a line of the table."""
        self.meaning = meaning
        self.state = state
        self.problem = problem

    @property
    def decision(self) -> LocalTransactionState:
        """The decision for the broker after the local transaction."""
        return DECISION_OF[self.state]


class TransactionFailed(KnowsItsProblem):
    """Nothing is written, and nothing will be."""

    def __init__(self, outcome: Outcome, reason: str = "") -> None:
        """`reason` replaces the outcome's meaning in the text. Raises ValueError unless the outcome is a failure."""
        super().__init__(reason or outcome.meaning)
        if outcome.problem is None:
            raise ValueError(f"{outcome.name} is no failure")
        self.outcome = outcome
        self._problem = outcome.problem

    @property
    def problem(self) -> Problem:
        """The answer to the request, by the outcome."""
        return self._problem


@dataclass(frozen=True, slots=True)
class AttemptProgress:
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
        self._progress = AttemptProgress(Outcome.NOT_STARTED)

    @property
    def progress(self) -> AttemptProgress:
        """The present progress; for any thread. Read it once and decide by that: it may change a moment later."""
        return self._progress

    def begin(self, transaction_id: str) -> None:
        """Begins the local transaction; only for the thread that runs it. Raises RuntimeError if it began before."""
        self._advance(Outcome.NOT_STARTED, AttemptProgress(Outcome.RUNNING, transaction_id))

    def conclude(self, outcome: Outcome, reason: str = "") -> None:
        """Ends the local transaction; only for the thread that ran it. Raises RuntimeError unless it is running."""
        self._advance(Outcome.RUNNING, AttemptProgress(outcome, self._progress.transaction_id, reason))

    def _advance(self, expected: Outcome, progress: AttemptProgress) -> None:
        if self._progress.outcome is not expected:
            raise RuntimeError(f"an attempt that is {self._progress.outcome.name} cannot become {progress.outcome.name}")
        self._progress = progress
