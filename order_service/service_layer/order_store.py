"""The port to the order database."""

from collections.abc import Sequence
from typing import Protocol

from order_messages.states import TransactionKind, TransactionState
from order_service.domain.history import Witness
from order_service.domain.life_cycle import OrderEvent
from order_service.domain.order import Cancellation, Order, OrderTransaction
from service_runtime.database.database_errors import DatabaseFailure


class HistoryDoubted(DatabaseFailure):
    """Raised if the database may be an old copy, or may not belong to the sender of the half message.

    A missing row then does not prove a rollback, so nothing was written.
    """


class OrderStore(Protocol):
    """Stores orders and transactions.

    All methods raise DatabaseUnavailable. Methods that write also raise OutcomeUnknown, and methods that end orders also raise
    HistoryDoubted.
    """

    def store_order(self, order: Order, transaction_id: str) -> None:
        """Stores order, items and transaction row in one local commit. Raises TransactionFailed."""

    def store_cancellation(self, cancellation: Cancellation, transaction_id: str) -> None:
        """Stores the order's new state and the transaction row in one local commit. Raises TransactionFailed."""

    def change_unpaid(self, order_id: str, event: OrderEvent, now_ms: int, reason: str | None = None) -> Order | None:
        """Marks an unpaid order as paid or cancelled, or as expired if overdue. Returns the order, or None for an unknown id."""

    def find_order(self, order_id: str) -> Order | None:
        """Returns the order with this id, or None."""

    def find_transactions(self, order_id: str) -> Sequence[OrderTransaction]:
        """Returns the transactions of the order, oldest first."""

    def find_order_by_key(self, customer: str, idempotency_key: str) -> Order | None:
        """Returns the customer's order with this idempotency key, or None."""

    def settle(
        self,
        transaction_id: str,
        order_id: str | None = None,
        kind: TransactionKind = TransactionKind.ORDER,
        witness: Witness | None = None,
    ) -> TransactionState:
        """Returns the final state COMMITTED or ROLLED_BACK, or PENDING. Writes ROLLED_BACK first if the transaction has no row.

        Also returns ROLLED_BACK if the transaction belongs to an order other than `order_id`. `witness` is the database state in
        the half message, which shows whether this database may be an old copy.
        """

    def expire_if_overdue(self, transaction_id: str, now_ms: int, witness: Witness | None = None) -> TransactionState:
        """Expires the order of a PENDING transaction if it is unpaid after its deadline. Returns the transaction's state."""
