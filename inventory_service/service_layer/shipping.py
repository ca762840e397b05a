"""Ships the orders in the inbox, in the database transaction that removes their messages."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from inventory_service.domain.shipment import Instruction, Shipment, ShipmentLine, ShipmentState
from order_messages import order_cancelled, order_created, stock_short
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated
from order_messages.stock_short import StockShort
from rocketmq_broker.databases.inbox import InboxMessage
from rocketmq_broker.message import Message, MessageExt
from service_runtime.observing.context import carried_properties, logging_about_message, span_about

S = TypeVar("S", contravariant=True)
"""A session of the inventory database."""
TAGS: Final = {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)}
"""The tag of the messages of each topic that the service consumes."""

logger = logging.getLogger(__name__)


def instruction_of(message: MessageExt | InboxMessage) -> Instruction:
    """Returns the instruction in a message about an order. Raises UnreadableBody."""
    if message.topic == order_cancelled.TOPIC:
        return Instruction(OrderCancelled.read(message.body).order_id)
    created = OrderCreated.read(message.body)
    return Instruction(created.order_id, tuple(ShipmentLine(item.name, item.quantity) for item in created.items))


class StockRoom(Protocol[S]):
    """Stock and shipments. All methods write in the caller's database transaction."""

    def apply(self, session: S, instructions: Sequence[Instruction]) -> list[Shipment]:
        """Ships or calls off orders. Returns their shipments in the same sequence. Repeating a call has no effect."""

    def report(self, session: S, message: Message) -> None:
        """Stores a message for the order service. The message is sent after the database commit."""


@dataclass(frozen=True, slots=True)
class Shipping(Generic[S]):
    """Ships the orders of messages, calls off cancelled orders, and reports shortages."""

    stock_room: StockRoom[S]

    def ship(self, session: S, messages: Sequence[InboxMessage]) -> bool:
        """Ships and calls off the orders of the messages, as the handler of `Inbox.drain`.

        Returns False if all messages had been processed before. The report of a shortage is written together with the shipment.
        If the order's message is redelivered, the shortage is reported again. Raises the database's error if the database refuses
        a row.
        """
        instructions = [instruction_of(message) for message in messages]
        with span_about(messages, "ship orders"):
            shipments = self.stock_room.apply(session, instructions)
        for message, instruction, shipment in zip(messages, instructions, shipments, strict=True):
            if shipment.state is ShipmentState.SHORT and instruction.lines is not None:
                with logging_about_message(message), span_about([message], "report a shortage"):
                    logger.info("order %s cannot be shipped: not enough %r in stock", shipment.order_id, shipment.missing)
                    self.stock_room.report(session, _shortage(shipment))
        return any(shipment.is_new for shipment in shipments)


def _shortage(shipment: Shipment) -> Message:
    order_id = shipment.order_id
    body = StockShort(version=stock_short.VERSION, order_id=order_id, missing=shipment.missing or "")
    return Message.of(
        stock_short.TOPIC, body.encode(), tags=stock_short.TAG, keys=[order_id], user_properties=carried_properties()
    )
