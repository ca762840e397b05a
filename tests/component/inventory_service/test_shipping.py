"""Tests of the path from a message in the inbox to the shipment and the report of a shortage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine, text
from sqlmodel import Session

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.domain.shipment import ShipmentState
from inventory_service.entrypoints.process import ship_due
from inventory_service.service_layer.shipping import Shipping, instruction_of
from order_messages import stock_short
from order_messages.body import UnreadableBody
from order_messages.stock_short import StockShort
from rocketmq_broker.client import ConsumeStatus
from rocketmq_broker.databases.inbox import InboxMessage
from rocketmq_broker.message import Message, MessageExt
from service_runtime.inbox.inbox_listener import InboxListener
from service_runtime.inbox.outbox import OutboxDrain
from service_runtime.observing.context import REQUEST_ID
from tests.component.inventory_service.conftest import a_context, a_message, cancelled, created, shipped


@dataclass(slots=True)
class Sender:
    """A sender that records messages."""

    sent: list[Message] = field(default_factory=list)

    def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def reported(self) -> list[tuple[str, str]]:
        bodies = [StockShort.read(message.body) for message in self.sent]
        return [(body.order_id, body.missing) for body in bodies]


@pytest.fixture
def sender() -> Sender:
    return Sender()


def a_listener(room: SqlStockRoom, ring: Callable[[], None] = lambda: None) -> InboxListener:
    return InboxListener(
        read=instruction_of,
        unreadable=UnreadableBody,
        store=room.store,
        ring=ring,
        hold=lambda _, __: pytest.fail("nothing had to be held"),
    )


def test_orders_are_shipped_and_cancelled_ones_taken_back(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 3)
    listener, rings = a_listener(stock_room, lambda: rings.append(1)), list[int]()
    assert listener([created("1", {"tea": 2})], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert (len(rings), stock_room.find_stock("tea")) == (1, 3)
    assert ship_due(stock_room, 16)
    assert stock_room.find_stock("tea") == 1
    assert listener([cancelled("1")], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert ship_due(stock_room, 16)
    assert not ship_due(stock_room, 16)
    assert (stock_room.find_stock("tea"), stock_room.inbox.state().waiting) == (3, 0)
    assert not stock_room.shortages.is_due()


def test_more_messages_than_a_batch_are_shipped_by_several_calls(sqlite_stock_room: SqlStockRoom) -> None:
    sqlite_stock_room.store([created(f"order-{number}") for number in range(150)])
    assert [ship_due(sqlite_stock_room, 16) for _ in range(4)] == [True, True, True, False]
    assert sqlite_stock_room.find_shipment("order-149") is not None


@pytest.mark.parametrize("make", [lambda: a_message(b"{"), lambda: a_message(b"{}", "order_cancellations")])
def test_an_unreadable_message_goes_to_the_dead_letters_and_blocks_no_other(
    sqlite_stock_room: SqlStockRoom, make: Callable[[], MessageExt]
) -> None:
    context = a_context()
    assert a_listener(sqlite_stock_room)([make(), created("2")], context) is ConsumeStatus.CONSUME_SUCCESS
    assert list(context.postponed.values()) == [-1]
    assert sqlite_stock_room.inbox.state().waiting == 1


def test_a_shortage_is_written_with_its_shipment_and_sent_with_the_orders_request(
    stock_room: SqlStockRoom, sender: Sender
) -> None:
    stock_room.set_stock("tea", 1)
    order = created("1", {"tea": 2})
    order = order.with_properties({**order.properties, REQUEST_ID: "request-1"})
    shipped(stock_room, order, created("2", {"tea": 1}))
    assert stock_room.shortages.state().new == 1
    OutboxDrain(stock_room.shortages, sender.send).send_due()
    (message,) = sender.sent
    assert (message.topic, message.tags, message.keys) == (stock_short.TOPIC, stock_short.TAG, ("1",))
    assert (sender.reported, message.properties[REQUEST_ID]) == ([("1", "tea")], "request-1")
    assert not stock_room.shortages.is_due()


def test_each_redelivery_of_an_order_reports_its_shortage_again_and_its_cancellation_does_not(
    stock_room: SqlStockRoom, sender: Sender
) -> None:
    stock_room.set_stock("tea", 1)
    order = created("1", {"tea": 2})
    for message in (order, order, cancelled("1")):
        shipped(stock_room, message)
    OutboxDrain(stock_room.shortages, sender.send).send_due()
    assert sender.reported == [("1", "tea")] * 2


def test_a_process_that_ends_before_the_commit_ships_and_reports_nothing(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 1)
    stock_room.store([created("1", {"tea": 1}), created("2", {"tea": 1})])

    def ship_and_end(session: Session, messages: Sequence[InboxMessage]) -> None:
        Shipping(stock_room).ship(session, messages)
        session.flush()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stock_room.inbox.drain(ship_and_end)
    assert (stock_room.find_stock("tea"), stock_room.find_shipment("1"), stock_room.inbox.state().new) == (1, None, 2)
    assert not stock_room.shortages.is_due()
    ship_due(stock_room, 16)
    assert (stock_room.find_stock("tea"), stock_room.shortages.state().new) == (0, 1)


def test_messages_of_a_parked_order_are_neither_lost_nor_doubled(sqlite_stock_room: SqlStockRoom, sqlite_engine: Engine) -> None:
    sqlite_stock_room.set_stock("tea", 3)
    with sqlite_engine.begin() as connection:
        connection.execute(text("CREATE TRIGGER no BEFORE INSERT ON shipment_lines BEGIN SELECT RAISE(ABORT, 'no'); END"))
    order = created("1", {"tea": 2})
    assert shipped(sqlite_stock_room, order, max_tries=0).parked == 1
    assert shipped(sqlite_stock_room, order, cancelled("1"), max_tries=0).handled == 1, "the order waits already"
    with sqlite_engine.begin() as connection:
        connection.execute(text("DROP TRIGGER no"))
    sqlite_stock_room.inbox.retry()
    assert ship_due(sqlite_stock_room, 16)
    shipment = sqlite_stock_room.find_shipment("1")
    assert (shipment and shipment.state, sqlite_stock_room.find_stock("tea")) == (ShipmentState.CALLED_OFF, 3)
