"""The consumer's message listener: ships orders, takes cancelled ones back, and tells of shortages.

A shortage is written first and told then, and the message is acknowledged last. If the service dies in between, the message is
delivered again, the shortage is found in the database, and told again: the order service may hear of it twice, but never not at
all. So the redelivery does what an outbox table would do.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker.client import ConsumeContext, ConsumeStatus
from broker.message import MessageExt
from inventory_service.domain.shipment import Line, Shipment, ShipmentState
from inventory_service.service_layer.ports import ShortageNotTold, ShortageTeller, StockRoom
from order_messages import order_cancelled
from order_messages.body import UnreadableMessage
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated
from service_runtime.database_errors import DatabaseFailure
from service_runtime.log_context import logging_about_message
from service_runtime.tracing import span_about
from service_runtime.trying_again import try_until_done

DEAD_LETTERS_AT_ONCE: Final = -1
"""The delay level that skips the retries: no redelivery makes a message readable."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OrderListener:
    """Acknowledges a message after its shipment is stored and its shortage told. An outage holds it, however long it lasts."""

    stock_room: StockRoom
    teller: ShortageTeller
    hold: Callable[[ConsumeContext, float], None] = ConsumeContext.hold

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Called by the push consumer in one of its threads. Raises MessagesWithdrawn if they are no longer this consumer's."""
        for message in messages:
            try:
                with logging_about_message(message), span_about([message], f"consume {message.topic}"):
                    self._until_done(_deed_of(message), message, context)
            except UnreadableMessage as error:
                logger.error("message %s goes to the dead letters, it cannot be read: %s", message.message_id, error)
                context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)
        return ConsumeStatus.CONSUME_SUCCESS

    def _until_done(self, deed: Callable[[StockRoom], Shipment], message: MessageExt, context: ConsumeContext) -> None:
        def is_done() -> bool:
            try:
                self._do(deed)
            except (DatabaseFailure, ShortageNotTold) as error:
                logger.warning("message %s is held, and tried again: %s", message.message_id, error)
                return False
            return True

        try_until_done(is_done, lambda seconds: self.hold(context, seconds))

    def _do(self, deed: Callable[[StockRoom], Shipment]) -> None:
        shipment = deed(self.stock_room)
        if shipment.state is ShipmentState.SHORT:
            logger.info("order %s cannot be shipped: too little %r in stock", shipment.order_id, shipment.missing)
            self.teller.tell(shipment.order_id, shipment.missing or "")


def _deed_of(message: MessageExt) -> Callable[[StockRoom], Shipment]:
    """What a message asks the stock room for. Raises UnreadableMessage."""
    if message.topic == order_cancelled.TOPIC:
        cancelled = OrderCancelled.read(message.body)
        return lambda stock_room: stock_room.call_off(cancelled.order_id)
    created = OrderCreated.read(message.body)
    lines = [Line(item.name, item.quantity) for item in created.items]
    return lambda stock_room: stock_room.ship(created.order_id, lines)
