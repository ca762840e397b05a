"""The words in the rows of the services, and the limits of their values: each is defined only here.

    word                table and column                 written by
    OrderState          orders.state                     order_service
    TransactionKind     transactions.kind                order_service
    TransactionState    transactions.state               order_service
    EntryKind           credits.kind                     credit_service
    BY_REFUSAL          credits.message_id, before it    credit_service
    BY_REPAIR           credits.message_id, before it    credit_service

Other programs read the rows as well: the reconciliation judges by them. It shares these words with the services, but none of
their rules: `order_service.domain.life_cycle` holds the transitions between states, `pipelines.judging.rules` the conditions of
each state.
"""

from enum import StrEnum
from typing import Final

MAX_ORDER_ID_LENGTH: Final = 36
MAX_CUSTOMER_LENGTH: Final = 100
MAX_TOTAL_CENTS: Final = 10**15
"""Above that a total is a mistake, not an order."""


class OrderState(StrEnum):
    """The state of an order."""

    # Each state is below those that lead to it: by that the reconciliation finds the later of two.

    PLACED = "PLACED"
    AWAITING_PAYMENT = "AWAITING_PAYMENT"
    PAID = "PAID"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"

    @property
    def is_told(self) -> bool:
        """True if the order's message is, or will be, with its consumers."""
        return self in (OrderState.PLACED, OrderState.PAID)


class TransactionKind(StrEnum):
    """The subject of a transaction's message. An order has one of the first kind, and at most one COMMITTED of the second."""

    ORDER = "order"
    CANCELLATION = "cancellation"


class TransactionState(StrEnum):
    """The state of a transaction. Only COMMITTED and ROLLED_BACK are final."""

    PENDING = "PENDING"
    """The order is stored and awaits its payment: check-back is answered UNKNOWN until it is paid, cancelled or expired."""
    COMMITTED = "COMMITTED"
    ROLLED_BACK = "ROLLED_BACK"
    UNKNOWN = "UNKNOWN"
    """Stands in no row: check-back will decide."""

    @property
    def is_written(self) -> bool:
        """True for a state that a transaction's row may hold."""
        return self is not TransactionState.UNKNOWN


class EntryKind(StrEnum):
    """The effect of a ledger entry on the customer's balance. An order has at most one entry of each kind."""

    CREDIT = "credit"
    """Adds the points of an order."""
    REVERSAL = "reversal"
    """Takes the points of a cancelled order back."""


BY_REFUSAL: Final = "refused "
"""Stands before the message's id in both entries of an order that was refused."""
BY_REPAIR: Final = "repair "
"""Stands before a repair's id, in place of a message's, in an entry that a repair wrote."""
