"""A stock room on a database of each kind; messages as the order service sends them."""

import pytest
from sqlalchemy import Engine

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import MIGRATIONS
from order_messages import order_cancelled, order_created
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated, OrderedItem
from rocketmq_broker.client import ConsumeContext
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


def a_context() -> ConsumeContext:
    return ConsumeContext(MessageQueue("orders", "broker-a", 0))


def a_message(body: bytes, topic: str = order_created.TOPIC, queue_offset: int = 0) -> MessageExt:
    properties = f"UNIQ_KEY\x01id-{queue_offset}".encode()
    return to_message(Record(0, 0, 0, 0, queue_offset, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, topic.encode(), properties))


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
