"""The transitions between the states of an order, which `order_messages.states` defines.

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

PLACED and PAID are published (`is_published`): the broker gets COMMIT, and consumers receive the message. The
cancellation of a published order is announced by a second transactional message. An order that is CANCELLED or EXPIRED while it
awaits its payment was never published: the broker gets ROLLBACK.
"""

from enum import Enum, auto
from typing import Final

from order_messages.states import OrderState


class OrderEvent(Enum):
    """An event that can change the state of an order."""

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
    """Returns the state after the event, or None if the event is not allowed in this state."""
    return _TRANSITIONS.get((state, event))
