"""The values of the state columns in the services' databases, and the limits of other values. Each is defined only here.

    definition          table and column                 written by
    OrderState          orders.state                     order_service
    TransactionKind     transactions.kind                order_service
    TransactionState    transactions.state               order_service
    EntryKind           credits.kind                     credit_service
    BY_REFUSAL          prefix of credits.message_id     credit_service
    BY_REPAIR           prefix of credits.message_id     credit_service

The reconciliation reads these rows too. It uses the same values as the services, but its own rules. The services' state
transitions are defined in `order_service.domain.life_cycle`. The conditions that the reconciliation checks for each state are
defined in `pipelines.judging.rules`.
"""

from enum import StrEnum
from typing import Final

MAX_ORDER_ID_LENGTH: Final = 36
MAX_CUSTOMER_LENGTH: Final = 100
MAX_TOTAL_CENTS: Final = 10**15
"""The maximum total of an order, in cents. A higher total is treated as a mistake."""


class OrderState(StrEnum):
    """The state of an order."""

    # A state comes after the states that lead to it. The reconciliation uses this order to find the later of two states.

    PLACED = "PLACED"
    AWAITING_PAYMENT = "AWAITING_PAYMENT"
    PAID = "PAID"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"

    @property
    def is_published(self) -> bool:
        """True if consumers have received the order's message or will receive it."""
        return self in (OrderState.PLACED, OrderState.PAID)


class TransactionKind(StrEnum):
    """The kind of a transaction.

    An order has one ORDER transaction, and at most one CANCELLATION transaction that is COMMITTED.
    """

    ORDER = "order"
    CANCELLATION = "cancellation"


class TransactionState(StrEnum):
    """The state of a transaction. Only COMMITTED and ROLLED_BACK are final."""

    PENDING = "PENDING"
    """The order is stored and awaits its payment. Check-backs are answered UNKNOWN until it is paid, cancelled or expired."""
    COMMITTED = "COMMITTED"
    ROLLED_BACK = "ROLLED_BACK"
    UNKNOWN = "UNKNOWN"
    """The outcome is not known yet; a check-back will decide. No row has this state."""

    @property
    def is_written(self) -> bool:
        """True if a transaction's row may have this state."""
        return self is not TransactionState.UNKNOWN


class EntryKind(StrEnum):
    """The effect of a ledger entry on the customer's balance. An order has at most one entry of each kind."""

    CREDIT = "credit"
    """Adds the points of an order."""
    REVERSAL = "reversal"
    """Subtracts the points of a cancelled order."""


BY_REFUSAL: Final = "refused "
"""The prefix of the message's id in both entries of a refused order."""
BY_REPAIR: Final = "repair "
"""The prefix of an entry's message id if a repair wrote the entry. The id of the repair follows it."""
