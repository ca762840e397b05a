"""The message listener, which ships orders, returns cancelled ones to stock, and reports shortages.

A shortage is written first, then sent, and the message is acknowledged last. If the service dies in between, the message is
redelivered, the shortage is found in the database, and it is sent again. The order service may receive a shortage twice, but
never misses one. So the redelivery replaces an outbox table.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from inventory_service.domain.shipment import Shipment, ShipmentLine, ShipmentState
from inventory_service.service_layer.ports import ShortageNotReported, ShortageReporter, StockRoom
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
"""The delay level that sends an unreadable message to the dead letters without retries."""
IN_A_MINUTE: Final = 5
"""The delay level for messages that are postponed for a minute; see `service_runtime.failing.holds.ASIDE_S`."""

StockAction = Callable[[StockRoom], Shipment]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShippingListener:
    """Acknowledges a message after its shipment is stored and its shortage is sent.

    During an outage it retries the message until the outage ends. If the database refuses a message, it retries the message until
    the database accepts another message of the topic; see `service_runtime.failing.refusals`.
    """

    stock_room: StockRoom
    reporter: ShortageReporter
    doubts: Doubts
    hold: Callable[[ConsumeContext, float], None] = ConsumeContext.hold
    acknowledging: Callable[[Sequence[tuple[str, ShipmentState]]], None] = lambda shipments: None
    """A function that is called before a message is acknowledged, with the order ids and states of its stored shipments."""

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        """Consumes messages on a thread of the push consumer. Raises MessagesWithdrawn if their queue was reassigned."""
        for message in messages:
            try:
                with logging_about_message(message), span_about([message], f"consume {message.topic}"):
                    self._settle(_action_of(message), message, context)
            except UnreadableBody as error:
                logger.error("message %s goes to the dead letters, its body is invalid: %s", message.message_id, error)
                context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)
        return ConsumeStatus.CONSUME_SUCCESS

    def _settle(self, action: StockAction, message: MessageExt, context: ConsumeContext) -> None:
        def try_again(_: Sequence[int], held: HeldBatch | None) -> list[int]:
            return [] if self._is_taken(action, message, context, held) else [0]

        if not try_again([0], None):
            return
        reason = "the inventory database refuses them (see the log) and has accepted no other message of the topic since"
        verdicts = self.doubts.settle([0], message.topic, reason, try_again, lambda seconds: self.hold(context, seconds))
        if verdicts.get(0) is RefusalVerdict.GIVES_WAY:
            context.give_way(message, IN_A_MINUTE)
        elif verdicts.get(0) is RefusalVerdict.BLAMED:
            logger.error("message %s goes to the dead letters: the database refuses it but accepts others", message.message_id)
            context.reconsume_later(message, DEAD_LETTERS_AT_ONCE)

    def _is_taken(self, action: StockAction, message: MessageExt, context: ConsumeContext, within: HeldBatch | None) -> bool:
        """Returns True if the action is done, or False if the database refuses it. Retries the action until an outage ends."""
        answers: list[bool] = []
        holds = self.doubts.holds

        def is_done() -> bool:
            try:
                answers.append(self._is_done(action, message.topic))
            except DatabaseRefusal as error:
                logger.warning("message %s is refused by the database: %s", message.message_id, error)
                answers.append(False)
            except (DatabaseFailure, ShortageNotReported) as error:
                held.hold(HoldCause.OUTAGE, str(error))
                return False
            return True

        with holds.batch(1, within) as held:
            try_until_done(is_done, lambda seconds: self.hold(context, seconds))
        return answers[-1]

    def _is_done(self, action: StockAction, kind: str) -> bool:
        began = self.doubts.holds.moment()
        shipment = action(self.stock_room)
        self.acknowledging([(shipment.order_id, shipment.state)])
        if shipment.is_new:
            self.doubts.holds.has_passed(kind, began)
        if shipment.state is ShipmentState.SHORT:
            logger.info("order %s cannot be shipped: too little %r in stock", shipment.order_id, shipment.missing)
            self.reporter.report(shipment.order_id, shipment.missing or "")
        return True


def _action_of(message: MessageExt) -> StockAction:
    """Returns the action of a message on the stock room. Raises UnreadableBody."""
    if message.topic == order_cancelled.TOPIC:
        cancelled = OrderCancelled.read(message.body)
        return lambda stock_room: stock_room.call_off(cancelled.order_id)
    created = OrderCreated.read(message.body)
    lines = [ShipmentLine(item.name, item.quantity) for item in created.items]
    return lambda stock_room: stock_room.ship(created.order_id, lines)
