"""Builds the messages about an order with the schemas of `order_messages`. The message key is the order id."""

from order_messages import order_cancelled, order_created
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated, OrderedItem
from order_service.domain.order import Cancellation, Order
from rocketmq_broker.message import Message
from service_runtime.observing.tracing import carried_properties


def order_message(order: Order) -> Message:
    """Returns the message about a placed order. Consumers receive it only after COMMIT."""
    body = OrderCreated(
        version=order_created.VERSION,
        order_id=order.order_id,
        customer=order.customer,
        total_cents=order.total_cents,
        currency=order.currency,
        created_at_ms=order.created_at_ms,
        items=tuple(OrderedItem(name=item.name, quantity=item.quantity) for item in order.items),
    )
    return Message.of(
        order_created.TOPIC, body.encode(), tags=order_created.TAG, keys=[order.order_id], user_properties=carried_properties()
    )


def cancellation_message(cancellation: Cancellation) -> Message:
    """Returns the message about a cancelled order. Consumers receive it only after COMMIT."""
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
