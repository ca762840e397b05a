"""The message that tells the world of an order: topic `orders`, tag `created`, key = order id, a JSON body."""

import json
from typing import Final

from broker.message import Message
from order_service.domain.order import Order

TOPIC: Final = "orders"
TAG: Final = "created"


def order_message(order: Order) -> Message:
    """The message of an order; consumers see it only after a COMMIT."""
    body = {
        "order_id": order.order_id,
        "customer": order.customer,
        "total_cents": order.total_cents,
        "currency": order.currency,
        "created_at_ms": order.created_at_ms,
    }
    return Message.of(TOPIC, json.dumps(body, ensure_ascii=False).encode(), tags=TAG, keys=[order.order_id])
