"""Reports shortages with a plain message. No transaction is needed, because the order is redelivered until the report is sent."""

from dataclasses import dataclass
from typing import Final

from inventory_service.service_layer.ports import ShortageNotReported
from order_messages import stock_short
from order_messages.stock_short import StockShort
from rocketmq_broker.message import Message
from service_runtime.messaging.sender_thread import NotSent, SenderThread
from service_runtime.observing.tracing import carried_properties

PRODUCER_GROUP: Final = "inventory_service"


@dataclass(frozen=True, slots=True)
class ShortageProducer:
    """Sends shortages (`service_layer.ports.ShortageReporter`). Thread-safe."""

    sender: SenderThread

    def report(self, order_id: str, missing: str) -> None:
        """Sends a message that reports the shortage. The broker has stored it on return. Raises ShortageNotReported."""
        body = StockShort(version=stock_short.VERSION, order_id=order_id, missing=missing)
        message = Message.of(
            stock_short.TOPIC, body.encode(), tags=stock_short.TAG, keys=[order_id], user_properties=carried_properties()
        )
        try:
            self.sender.send(message)
        except NotSent as error:
            raise ShortageNotReported(f"the shortage of order {order_id} could not be sent: {error}") from error
