"""Fixtures for the inventory service: a stock room on a database of each kind, and messages of the order service."""

from dataclasses import replace
from itertools import count

import pytest
from sqlalchemy import Engine

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import MIGRATIONS
from inventory_service.domain.shipment import Instruction, Shipment, ShipmentLine
from inventory_service.service_layer.shipping import Shipping
from order_messages import order_cancelled, order_created
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated, OrderedItem
from rocketmq_broker.client import ConsumeContext
from rocketmq_broker.databases.inbox import DrainResult
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.message.record import Record, to_message
from rocketmq_broker.world import World


@pytest.fixture
def migrations() -> str:
    return MIGRATIONS


@pytest.fixture
def stock_room(engine: Engine) -> SqlStockRoom:
    return SqlStockRoom(engine, World())


@pytest.fixture
def sqlite_stock_room(sqlite_engine: Engine) -> SqlStockRoom:
    return SqlStockRoom(sqlite_engine, World())


def to_ship(order_id: str, **articles: int) -> Instruction:
    return Instruction(order_id, tuple(ShipmentLine(article, quantity) for article, quantity in articles.items()))


def applied(stock_room: SqlStockRoom, *instructions: Instruction) -> list[Shipment]:
    """Applies the instructions in one database transaction, and returns the shipments."""
    with stock_room.inbox._transaction() as session:
        return stock_room.apply(session, instructions)


def shipped(stock_room: SqlStockRoom, *messages: MessageExt, max_tries: int = 16) -> DrainResult:
    """Stores the messages in the inbox, and processes the messages that are due."""
    stock_room.store(messages)
    return stock_room.inbox.drain(Shipping(stock_room).ship, max_tries=max_tries)


def a_context() -> ConsumeContext:
    return ConsumeContext(MessageQueue("orders", "broker-a", 0))


_numbers = count()


def a_message(body: bytes, topic: str = order_created.TOPIC) -> MessageExt:
    """Returns a message with unique ids."""
    number = next(_numbers)
    properties = f"UNIQ_KEY\x01id-{number}".encode()
    record = Record(0, 0, 0, 0, number, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, topic.encode(), properties)
    return replace(to_message(record), offset_message_id=f"offset-{number}")


def created(order_id: str = "order-1", items: dict[str, int] | None = None) -> MessageExt:
    body = OrderCreated(
        version=order_created.VERSION,
        order_id=order_id,
        customer="ada",
        total_cents=100,
        currency="EUR",
        created_at_ms=1,
        items=tuple(OrderedItem(name=name, quantity=quantity) for name, quantity in (items or {"tea": 1}).items()),
    )
    return a_message(body.encode())


def cancelled(order_id: str = "order-1") -> MessageExt:
    body = OrderCancelled(
        version=order_cancelled.VERSION,
        order_id=order_id,
        customer="ada",
        total_cents=100,
        currency="EUR",
        cancelled_at_ms=2,
        reason="by the customer",
    )
    return a_message(body.encode(), order_cancelled.TOPIC)
