"""The port to the order database."""

from typing import Protocol

from order_messages.states import TransactionKind, TransactionState
from order_service.domain.history import Witness
from order_service.domain.order import Cancellation, Order
from service_runtime.database.database_errors import DatabaseFailure


class HistoryDoubted(DatabaseFailure):
    """The database may be another than the sender's, or an older copy: a missing row may exist. Nothing was written."""


class TransactionStore(Protocol):
    """The data for answers to check-backs. Each method raises DatabaseUnavailable, OutcomeUnknown and HistoryDoubted."""

    def settle(
        self,
        transaction_id: str,
        order_id: str | None = None,
        kind: TransactionKind = TransactionKind.ORDER,
        witness: Witness | None = None,
    ) -> TransactionState:
        """Returns COMMITTED or ROLLED_BACK, both final, or PENDING; ROLLED_BACK for the message of another order.

        `witness` is the half message's statement about the database that may decide.
        """

    def expire_if_overdue(self, transaction_id: str, now_ms: int, witness: Witness | None = None) -> TransactionState:
        """Returns the state of a PENDING transaction: ROLLED_BACK if its order is still unpaid after the deadline."""


class OrderStore(TransactionStore, Protocol):
    """Orders and transaction rows. Each method raises DatabaseUnavailable; those that write also raise OutcomeUnknown."""

    def witness(self) -> Witness:
        """Returns the database's state for the next half message. Raises HistoryDoubted if it may be the wrong database."""

    def store_order(self, order: Order, transaction_id: str) -> None:
        """Writes order, items and transaction row; one local commit makes them durable. Raises TransactionFailed."""

    def store_cancellation(self, cancellation: Cancellation, transaction_id: str) -> None:
        """Writes the order's state and transaction row; one local commit makes them durable. Raises TransactionFailed."""

    def pay(self, order_id: str, now_ms: int) -> Order | None:
        """Returns the order afterwards: PAID if possible, EXPIRED if overdue, else unchanged; None if it is unknown."""

    def cancel_unpaid(self, order_id: str, reason: str, now_ms: int) -> Order | None:
        """Returns the order afterwards: CANCELLED if it awaited payment, EXPIRED if overdue, else unchanged; None if unknown."""

    def find_order(self, order_id: str) -> Order | None:
        """Returns the order with this id, or None."""

    def find_transaction_id(self, order_id: str) -> str | None:
        """Returns the id of the transaction that wrote the order, or None."""

    def find_transaction(self, transaction_id: str) -> TransactionState | None:
        """Returns the state of the transaction, or None while it is open."""

    def find_order_by_key(self, customer: str, idempotency_key: str) -> Order | None:
        """Returns the customer's order with this idempotency key, or None."""
