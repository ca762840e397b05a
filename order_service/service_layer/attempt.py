"""One attempt to place or to cancel an order.

The producer passes the attempt to the local transaction as its argument. Two threads use the attempt: one runs the
local transaction and sets the outcome, the other waits for the outcome and responds to the caller. After a timeout
both may use the attempt at the same time:

    NOT_STARTED --begin--> RUNNING --conclude--> any other outcome, which is final
"""

from enum import Enum
from typing import Final, Protocol

from order_messages.states import TransactionState
from order_service.domain.order import Cancellation, Order
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message
from service_runtime.http.problem import ErrorWithProblem, Problem

Wanted = Order | Cancellation
"""The order or the cancellation that a transaction stores."""


DECISION_OF: Final = {
    TransactionState.COMMITTED: LocalTransactionState.COMMIT_MESSAGE,
    TransactionState.ROLLED_BACK: LocalTransactionState.ROLLBACK_MESSAGE,
    TransactionState.PENDING: LocalTransactionState.UNKNOWN,
    TransactionState.UNKNOWN: LocalTransactionState.UNKNOWN,
}
"""Maps each transaction state to the decision that is sent to the broker, after the local transaction and at each check-back."""

_ROLLED_BACK: Final = TransactionState.ROLLED_BACK


class Outcome(Enum):
    """The outcome of an attempt, which may be unknown.

    Each outcome has a description and a transaction state, which determines the decision for the broker. If nothing was changed,
    it also has the problem response for the caller.
    """

    NOT_STARTED = (
        "the broker is unreachable or did not store the half message; nothing was ordered or changed",
        _ROLLED_BACK,
        Problem(503, "Broker unavailable"),
    )
    RUNNING = "the local transaction is running", TransactionState.UNKNOWN
    STORED = "the local commit succeeded: order and transaction row are durable", TransactionState.COMMITTED
    AWAITING_PAYMENT = (
        "the local commit succeeded, and the order awaits its payment: a check-back will decide",
        TransactionState.PENDING,
    )
    REFUSED = "a rule refused the order", _ROLLED_BACK, Problem(409, "Order refused")
    KEY_TAKEN = (
        "another order has this idempotency key, and cannot be read now: repeat the request",
        _ROLLED_BACK,
        Problem(409, "Idempotency key in use"),
    )
    NOT_CANCELLABLE = (
        "the order cannot be cancelled in its current state",
        _ROLLED_BACK,
        Problem(409, "Not possible in this state"),
    )
    DECIDED_BEFORE = (
        "a check-back rolled the transaction back before the local transaction ran",
        _ROLLED_BACK,
        Problem(503, "Transaction expired"),
    )
    UNAVAILABLE = "the database did not accept the change", _ROLLED_BACK, Problem(503, "Database unavailable")
    UNKNOWN = "it is unknown whether the local commit succeeded; a check-back will decide", TransactionState.UNKNOWN

    def __init__(self, meaning: str, state: TransactionState, problem: Problem | None = None) -> None:
        """Sets the description, the transaction state, and the problem response."""
        self.meaning = meaning
        self.state = state
        self.problem = problem

    @property
    def decision(self) -> LocalTransactionState:
        """The decision to send to the broker after the local transaction."""
        return DECISION_OF[self.state]


class TransactionFailed(ErrorWithProblem):
    """Raised if the transaction was rolled back. Nothing was or will be stored."""

    def __init__(self, outcome: Outcome, reason: str = "") -> None:
        """Creates the error. `reason` replaces the outcome's description. Raises ValueError if the outcome is not a failure."""
        super().__init__(reason or outcome.meaning)
        if outcome.problem is None:
            raise ValueError(f"outcome {outcome.name} is not a failure")
        self.outcome = outcome
        self.problem = outcome.problem


class Attempt:
    """The requested order or cancellation, and the outcome of its local transaction.

    `transaction_id` and `reason` are set before `outcome`. A thread must therefore read `outcome` first, and only once, to get
    matching values. `reason` is the reason why a rule refused the order, and empty otherwise.
    """

    __slots__ = ("outcome", "reason", "transaction_id", "wanted")

    def __init__(self, wanted: Wanted) -> None:
        """Creates an attempt that has not started."""
        self.wanted = wanted
        self.transaction_id: str | None = None
        self.reason = ""
        self.outcome = Outcome.NOT_STARTED

    def begin(self, transaction_id: str) -> None:
        """Marks the local transaction as started. Only the thread that runs it may call this.

        Raises RuntimeError if it was started before.
        """
        self._require(Outcome.NOT_STARTED)
        self.transaction_id = transaction_id
        self.outcome = Outcome.RUNNING

    def conclude(self, outcome: Outcome, reason: str = "") -> None:
        """Sets the final outcome. Only the thread that ran the local transaction may call this.

        Raises RuntimeError if the local transaction is not running.
        """
        self._require(Outcome.RUNNING)
        self.reason = reason
        self.outcome = outcome

    def _require(self, expected: Outcome) -> None:
        if self.outcome is not expected:
            raise RuntimeError(f"the attempt must be {expected.name} for this step, but is {self.outcome.name}")


class TransactionalSender(Protocol):
    """The interface that sends transactional messages to the broker."""

    def send_in_transaction(self, message: Message, attempt: Attempt) -> Outcome:
        """Sends the half message, runs the local transaction, and sends COMMIT or ROLLBACK to the broker.

        `attempt` is the argument of the local transaction. Returns the outcome: NOT_STARTED if the half message was not stored,
        and UNKNOWN or RUNNING if the local transaction may still be running after the timeout. Raises DatabaseFailure if the
        database fails or may be an old copy.
        """
