"""The port to the order database."""

from typing import Protocol

from order_messages.states import TransactionKind, TransactionState
from order_service.domain.history import Witness
from order_service.domain.order import Cancellation, Order
from service_runtime.database.database_errors import DatabaseFailure


class HistoryDoubted(DatabaseFailure):
    """The database may be another one than the sender's, or an older copy: what it lacks may exist. Nothing was written."""


class TransactionStore(Protocol):
    """What a check-back is answered by. Each method raises DatabaseUnavailable, OutcomeUnknown and HistoryDoubted."""

    def settle(
        self,
        transaction_id: str,
        order_id: str | None = None,
        kind: TransactionKind = TransactionKind.ORDER,
        witness: Witness | None = None,
    ) -> TransactionState:
        """COMMITTED or ROLLED_BACK, final from now on, or PENDING; for the message of another order ROLLED_BACK.

        `witness` is what the half message says of the database that will decide.
        """

    def expire_if_overdue(self, transaction_id: str, now_ms: int, witness: Witness | None = None) -> TransactionState:
        """The state of a transaction that was PENDING: ROLLED_BACK if its order is unpaid although the deadline has passed."""


class OrderStore(TransactionStore, Protocol):
    """Orders and transaction rows. Each method raises DatabaseUnavailable; those that write also raise OutcomeUnknown."""

    def witness(self) -> Witness:
        """What the database holds before a half message is sent."""

    def store_order(self, order: Order, transaction_id: str) -> None:
        """Writes order, items and transaction row; one local commit makes them durable. Raises TransactionFailed."""

    def store_cancellation(self, cancellation: Cancellation, transaction_id: str) -> None:
        """Writes the order's state and transaction row; one local commit makes them durable. Raises TransactionFailed."""

    def pay(self, order_id: str, now_ms: int) -> Order | None:
        """The order afterwards: PAID if that was possible, EXPIRED if it was overdue, else as it was; None if it is unknown."""

    def cancel_unpaid(self, order_id: str, reason: str, now_ms: int) -> Order | None:
        """The order afterwards: CANCELLED if it awaited its payment, EXPIRED if overdue, else as it was; None if unknown."""

    def find_order(self, order_id: str) -> Order | None:
        """The order with this id."""

    def find_transaction_id(self, order_id: str) -> str | None:
        """The transaction that wrote the order."""

    def find_transaction(self, transaction_id: str) -> TransactionState | None:
        """The state of the transaction, or None while it is open."""

    def find_order_by_key(self, customer: str, idempotency_key: str) -> Order | None:
        """The customer's order that was placed under this idempotency key."""
