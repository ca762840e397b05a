"""The port to the order database, and the two ways in which it refuses an order."""

from typing import Protocol

from order_service.domain.order import Order
from order_service.domain.transaction import TransactionState


class OrderNotTaken(Exception):
    """Base of both. The database answered, and wrote nothing."""


class TransactionDecided(OrderNotTaken):
    """The transaction's row is there already: check-back has rolled it back."""


class IdempotencyKeyTaken(OrderNotTaken):
    """Another order of the customer has the key."""


class OrderStore(Protocol):
    """Orders and transaction rows. Each method raises DatabaseUnavailable; those that write also raise OutcomeUnknown."""

    def store_order(self, order: Order, transaction_id: str) -> None:
        """Writes order, items and transaction row; one local commit makes them durable. Raises an OrderNotTaken."""

    def settle(self, transaction_id: str, order_id: str | None = None) -> TransactionState:
        """COMMITTED or ROLLED_BACK, final from now on; for a message that carries another order than `order_id`, ROLLED_BACK."""

    def find_transaction_id(self, order_id: str) -> str | None:
        """The transaction that wrote the order."""

    def find_order_by_key(self, customer: str, idempotency_key: str) -> Order | None:
        """The customer's order that was placed under this idempotency key."""
