"""An order and the message about it."""

import json
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.client import Message

TOPIC: Final = "orders"
CONSUMER_GROUP: Final = "credits"
"""The consumer group of the credit process."""


@dataclass(frozen=True, slots=True)
class Order:
    """A customer's order."""

    number: int
    """The number of the order, counted from 0."""
    total_cents: int

    @property
    def order_id(self) -> str:
        """The id of the order, which is also the key of its database row, its message and its credit."""
        return f"order-{self.number:06}"

    def message(self) -> Message:
        """Returns the message about the order."""
        body = json.dumps({"order_id": self.order_id, "total_cents": self.total_cents})
        return Message.of(TOPIC, body, keys=[self.order_id])
