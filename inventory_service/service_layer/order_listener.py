"""The consumer's message listener: ships orders, takes cancelled ones back, and reports shortages.

A shortage is written first, then sent, and the message is acknowledged last. If the service dies in between, the message is
redelivered, the shortage is found in the database, and sent again: the order service may get it twice, but never misses it. So
the redelivery replaces an outbox table.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from inventory_service.domain.shipment import Shipment, ShipmentLine, ShipmentState
from inventory_service.service_layer.ports import ShortageNotTold, ShortageTeller, StockRoom
from order_messages import order_cancelled
from order_messages.body import UnreadableBody
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.message import MessageExt
from service_runtime.database.database_errors import DatabaseFailure, DatabaseRefusal
from service_runtime.failing.holds import HeldBatch, HoldCause
from service_runtime.failing.refusals import Doubts, RefusalVerdict
from service_runtime.failing.trying_again import try_until_done
from service_runtime.observing.log_context import logging_about_message
from service_runtime.observing.tracing import span_about

DEAD_LETTERS_AT_ONCE: Final = -1
"""The delay level that skips the retries: no redelivery makes a message readable."""
IN_A_MINUTE: Final = 5
"""The delay level of messages that give way; `service_runtime.failing.holds.ASIDE_S`."""

Deed = Callable[[StockRoom], Shipment]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShippingListener:
    """Acknowledges a message after its shipment is stored and its shortage sent. Holds it during an outage of any length.

    A refusal holds it too, until the database takes another message of the topic: see `service_runtime.failing.refusals`.
    """

    stock_room: StockRoom
    teller: ShortageTeller
    doubts: Doubts
    hold: Callable[[ConsumeContext, float], None] = ConsumeContext.hold
    acknowledging: Callable[[Sequence[tuple[str, ShipmentState]]], None] = lambda shipments: None
    """Called with an order and the state of its shipment, both durable, before the message is acknowledged."""

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Consumes messages in a thread of the push consumer. Raises MessagesWithdrawn if they are no longer this consumer's."""
        for message in messages:
            try:
                with logging_about_message(message), span_about([message], f"consume {message.topic}"):
                    self._settle(_deed_of(message), message, context)
            except UnreadableBody as error:
                logger.error("message %s goes to the dead letters, it cannot be read: %s", message.message_id, error)
                context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)
        return ConsumeStatus.CONSUME_SUCCESS

    def _settle(self, deed: Deed, message: MessageExt, context: ConsumeContext) -> None:
        def try_again(_: Sequence[int], held: HeldBatch | None) -> list[int]:
            return [] if self._is_taken(deed, message, context, held) else [0]

        if not try_again([0], None):
            return
        reason = "the inventory database refuses them (the log says why), and has taken no other message of the topic since"
        verdicts = self.doubts.settle([0], message.topic, reason, try_again, lambda seconds: self.hold(context, seconds))
        if verdicts.get(0) is RefusalVerdict.GIVES_WAY:
            context.give_way(message, IN_A_MINUTE)
        elif verdicts.get(0) is RefusalVerdict.BLAMED:
            logger.error("message %s goes to the dead letters: the database refuses it and takes others", message.message_id)
            context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)

    def _is_taken(self, deed: Deed, message: MessageExt, context: ConsumeContext, within: HeldBatch | None) -> bool:
        """Returns whether the deed is done; False if the database refuses it. Waits for the end of an outage."""
        answers: list[bool] = []
        holds = self.doubts.holds

        def is_done() -> bool:
            try:
                answers.append(self._is_done(deed, message.topic))
            except DatabaseRefusal as error:
                logger.warning("message %s is refused by the database: %s", message.message_id, error)
                answers.append(False)
            except (DatabaseFailure, ShortageNotTold) as error:
                held.hold(HoldCause.OUTAGE, str(error))
                return False
            return True

        with holds.batch(1, within) as held:
            try_until_done(is_done, lambda seconds: self.hold(context, seconds))
        return answers[-1]

    def _is_done(self, deed: Deed, kind: str) -> bool:
        began = self.doubts.holds.moment()
        shipment = deed(self.stock_room)
        self.acknowledging([(shipment.order_id, shipment.state)])
        if shipment.is_new:
            self.doubts.holds.has_passed(kind, began)
        if shipment.state is ShipmentState.SHORT:
            logger.info("order %s cannot be shipped: too little %r in stock", shipment.order_id, shipment.missing)
            self.teller.tell(shipment.order_id, shipment.missing or "")
        return True


def _deed_of(message: MessageExt) -> Deed:
    """Returns the stock room's work for a message. Raises UnreadableBody."""
    if message.topic == order_cancelled.TOPIC:
        cancelled = OrderCancelled.read(message.body)
        return lambda stock_room: stock_room.call_off(cancelled.order_id)
    created = OrderCreated.read(message.body)
    lines = [ShipmentLine(item.name, item.quantity) for item in created.items]
    return lambda stock_room: stock_room.ship(created.order_id, lines)
