"""Cancels a published order with a second transactional message, and other orders in the database only."""

from collections.abc import Callable
from dataclasses import dataclass

from order_messages import order_cancelled
from order_messages.order_cancelled import OrderCancelled
from order_messages.states import OrderState, TransactionState
from order_service.domain.life_cycle import OrderEvent, next_state
from order_service.domain.order import Cancellation, Order
from order_service.service_layer.attempt import Attempt, Outcome, TransactionalSender, TransactionFailed
from order_service.service_layer.order_store import OrderStore
from order_service.service_layer.paying import ImpossibleNow, UnknownOrder
from rocketmq_broker.message import Message
from service_runtime.observing.context import carried_properties


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An order after a request to cancel it. If `is_known` is False, the outcome is not known yet. Read the order again later."""

    order: Order
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class OrderCancelling:
    """Cancels orders at the request of customers, and when a compensating message arrives."""

    store: OrderStore
    sender: TransactionalSender
    now_ms: Callable[[], int]

    def cancel(self, order_id: str, reason: str) -> Cancelled:
        """Cancels an order and returns it. Cancelling it again changes nothing.

        Raises UnknownOrder, ImpossibleNow if the order is EXPIRED, or TransactionFailed. In these cases nothing was changed.
        Raises DatabaseFailure if the database fails.
        """
        order = self.store.change_unpaid(order_id, OrderEvent.CANCEL, self.now_ms(), reason)
        if order is None:
            raise UnknownOrder(f"no order has the id {order_id}")
        if order.state is OrderState.CANCELLED:
            return Cancelled(order)
        if next_state(order.state, OrderEvent.CANCEL) is None:
            raise ImpossibleNow(f"the order is {order.state} and can no longer be cancelled")
        cancellation = Cancellation(order=order, reason=reason, cancelled_at_ms=self.now_ms())
        outcome = self.sender.send_in_transaction(cancellation_message(cancellation), Attempt(cancellation))
        if outcome.state is TransactionState.UNKNOWN:
            return Cancelled(order, is_known=False)
        if outcome in (Outcome.STORED, Outcome.NOT_CANCELLABLE):
            # NOT_CANCELLABLE: another request cancelled the order in the meantime.
            return Cancelled(self.store.find_order(order.order_id) or order)
        raise TransactionFailed(outcome)


def cancellation_message(cancellation: Cancellation) -> Message:
    """Returns the message about a cancelled order, with the order id as its key. Consumers receive it only after COMMIT."""
    order = cancellation.order
    body = OrderCancelled(
        version=order_cancelled.VERSION,
        order_id=order.order_id,
        customer=order.customer,
        total_cents=order.total_cents,
        currency=order.currency,
        cancelled_at_ms=cancellation.cancelled_at_ms,
        reason=cancellation.reason,
    )
    return Message.of(
        order_cancelled.TOPIC,
        body.encode(),
        tags=order_cancelled.TAG,
        keys=[order.order_id],
        user_properties=carried_properties(),
    )
