"""The topics and the consumer group that the reconciliation follows, and the fields of their messages. Both engines use them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import topics

REQUIRED: Final = ("order_id", "customer", "total_cents", "currency", "created_at_ms")
"""The fields that exist in all versions of an order's message."""
REQUIRED_OF_CANCELLATION: Final = ("order_id", "customer", "total_cents", "currency", "cancelled_at_ms", "reason")
"""The fields that exist in all versions of a cancellation's message."""


@dataclass(frozen=True, slots=True)
class Route:
    """The topics of the messages, and the consumer group that writes the credits."""

    topic: str = "orders"
    consumer_group: str = "credit_service"
    cancellation_topic: str = "order_cancellations"
    """The topic of cancellations of published orders."""

    @property
    def retry_topic(self) -> str:
        """The topic of the group's redeliveries."""
        return topics.retry_topic(self.consumer_group)

    @property
    def consumed_topics(self) -> tuple[str, ...]:
        """The topics whose consumer offsets are used."""
        return self.topic, self.retry_topic, self.cancellation_topic

    @property
    def dead_letter_topic(self) -> str:
        """The topic of the group's dead letters."""
        return topics.dead_letter_topic(self.consumer_group)


Progress = Mapping[str, Mapping[int, int] | None]
"""Maps each topic to the consumer group's next offset in each queue, or to None if the offsets are unknown."""
