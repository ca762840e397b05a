"""Reports refusals with a plain message. No transaction is needed, because the order is redelivered until the report is sent."""

from dataclasses import dataclass
from typing import Final

from credit_service.service_layer.refusing import RefusalNotReported
from order_messages import credit_refused
from order_messages.credit_refused import CreditRefused
from rocketmq_broker.message import Message
from service_runtime.messaging.sender_thread import NotSent, SenderThread
from service_runtime.observing.tracing import carried_properties

PRODUCER_GROUP: Final = "credit_service"


@dataclass(frozen=True, slots=True)
class RefusalProducer:
    """Sends refusals (`service_layer.refusing.RefusalReporter`). Thread-safe."""

    sender: SenderThread

    def report(self, order_id: str, reason: str) -> None:
        """Sends a message that reports the refusal. The broker has stored it on return. Raises RefusalNotReported."""
        body = CreditRefused(version=credit_refused.VERSION, order_id=order_id, reason=reason)
        message = Message.of(
            credit_refused.TOPIC, body.encode(), tags=credit_refused.TAG, keys=[order_id], user_properties=carried_properties()
        )
        try:
            self.sender.send(message)
        except NotSent as error:
            raise RefusalNotReported(f"the refusal of order {order_id} could not be sent: {error}") from error
