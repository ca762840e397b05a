"""The states of an order, and the transitions between them.

                     paid at once                                   CANCEL
        (request) ─────────────────────────────────────> PLACED ───────────────┐
            │                                                                  v
            │ to be paid later                                CANCEL       CANCELLED
            └──────────────────> AWAITING_PAYMENT ───────────────────────────> ^
                                    │         │    PAY             CANCEL      │
                          the       │         └──────────> PAID ───────────────┘
                          deadline  │ EXPIRE
                          passes    v
                                 EXPIRED

PLACED and PAID are told: the broker gets COMMIT, and consumers the message. An order that goes from there to CANCELLED is told
again, by a second transactional message. CANCELLED from AWAITING_PAYMENT, and EXPIRED, were never told: the broker gets ROLLBACK.
"""

from enum import Enum, StrEnum, auto
from typing import Final


class OrderState(StrEnum):
    """The state of an order."""

    PLACED = "PLACED"
    AWAITING_PAYMENT = "AWAITING_PAYMENT"
    PAID = "PAID"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"

    @property
    def is_told(self) -> bool:
        """True if the order's message is, or will be, with its consumers."""
        return self in (OrderState.PLACED, OrderState.PAID)


class OrderEvent(Enum):
    """An event in an order's life."""

    PAY = auto()
    CANCEL = auto()
    EXPIRE = auto()


_TRANSITIONS: Final = {
    (OrderState.PLACED, OrderEvent.CANCEL): OrderState.CANCELLED,
    (OrderState.AWAITING_PAYMENT, OrderEvent.PAY): OrderState.PAID,
    (OrderState.AWAITING_PAYMENT, OrderEvent.CANCEL): OrderState.CANCELLED,
    (OrderState.AWAITING_PAYMENT, OrderEvent.EXPIRE): OrderState.EXPIRED,
    (OrderState.PAID, OrderEvent.CANCEL): OrderState.CANCELLED,
}


def next_state(state: OrderState, event: OrderEvent) -> OrderState | None:
    """Returns the state after the event; None if the event is not possible in this state."""
    return _TRANSITIONS.get((state, event))
