import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from prometheus_client import CollectorRegistry
from sqlalchemy import Engine, text
from sqlmodel import Session

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import InventoryDatabase
from inventory_service.domain.shipment import Instruction, Shipment, ShipmentLine, ShipmentState
from inventory_service.entrypoints.process import message_counter
from inventory_service.service_layer.shipping import Shipping
from rocketmq_broker.client import MessageQueue
from rocketmq_broker.databases.inbox import InboxMessage
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseUnavailable
from tests.component.inventory_service.conftest import applied, cancelled, created, shipped, to_ship

SHIPPED, SHORT, RETURNED, CALLED_OFF = ShipmentState
OFF = Instruction("order-1")


def test_an_order_takes_what_it_wants_from_the_stock(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 5)
    lines = (ShipmentLine("tea", 2), ShipmentLine("download", 1), ShipmentLine("tea", 1))
    (done,) = applied(stock_room, Instruction("order-1", lines))
    assert done == Shipment("order-1", SHIPPED) == stock_room.find_shipment("order-1")
    assert (stock_room.find_stock("tea"), stock_room.find_stock("download")) == (2, None)


def test_an_order_that_is_short_takes_nothing_at_all(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("cup", 9)
    stock_room.set_stock("tea", 1)
    assert applied(stock_room, to_ship("order-1", cup=2, tea=2)) == [Shipment("order-1", SHORT, "tea")]
    assert (stock_room.find_stock("cup"), stock_room.find_stock("tea")) == (9, 1)


@pytest.mark.parametrize("is_one_batch", [True, False])
def test_a_redelivery_ships_nothing_twice_and_finds_the_same_shortage(stock_room: SqlStockRoom, is_one_batch: bool) -> None:
    stock_room.set_stock("tea", 3)
    orders = [to_ship("order-1", tea=2), to_ship("order-2", tea=2)] * 3
    batches = [orders] if is_one_batch else [[order] for order in orders]
    done = [shipment for batch in batches for shipment in applied(stock_room, *batch)]
    assert done == [Shipment("order-1", SHIPPED), Shipment("order-2", SHORT, "tea")] * 3
    assert stock_room.find_stock("tea") == 1
    stock_room.set_stock("tea", 100)
    assert applied(stock_room, orders[1]) == [Shipment("order-2", SHORT, "tea")]
    assert stock_room.find_stock("tea") == 100


def test_orders_of_a_batch_take_from_the_stock_one_after_the_other(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 5)
    done = applied(stock_room, *(to_ship(f"order-{number}", tea=2) for number in (3, 1, 2)), to_ship("order-0", tea=1))
    assert [shipment.state for shipment in done] == [SHIPPED, SHIPPED, SHORT, SHIPPED]
    assert stock_room.find_stock("tea") == 0


@pytest.mark.parametrize("is_one_batch", [True, False])
def test_a_cancelled_order_comes_back_into_stock_once(stock_room: SqlStockRoom, is_one_batch: bool) -> None:
    stock_room.set_stock("tea", 3)
    instructions = [to_ship("order-1", tea=2), OFF, OFF, OFF, to_ship("order-1", tea=2)]
    batches = [instructions] if is_one_batch else [[one] for one in instructions]
    done = [shipment.state for batch in batches for shipment in applied(stock_room, *batch)]
    assert done == [SHIPPED, *[RETURNED] * 4]
    assert stock_room.find_stock("tea") == 3


@pytest.mark.parametrize("is_one_batch", [True, False])
def test_a_cancellation_that_comes_before_its_order_keeps_it_from_being_shipped(
    stock_room: SqlStockRoom, is_one_batch: bool
) -> None:
    stock_room.set_stock("tea", 3)
    order = to_ship("order-1", tea=2)
    batches = [[OFF, order]] if is_one_batch else [[OFF], [order]]
    assert [one.state for batch in batches for one in applied(stock_room, *batch)] == [CALLED_OFF] * 2
    assert stock_room.find_stock("tea") == 3


def test_an_order_that_was_short_stays_so_when_it_is_cancelled(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 0)
    assert applied(stock_room, to_ship("order-1", tea=2), OFF) == [Shipment("order-1", SHORT, "tea")] * 2
    assert stock_room.find_stock("tea") == 0


def test_many_orders_at_once_never_ship_more_than_there_is(stock_room: SqlStockRoom) -> None:
    """Concurrent orders never ship more than the stock, even with duplicate messages, cancellations and overlapping batches."""
    for article in ("tea", "cup"):
        stock_room.set_stock(article, 20)
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        orders = [
            to_ship(f"order-{number}", **dict.fromkeys(("tea", "cup")[:: 1 if seed % 2 else -1], 1)) for number in range(30)
        ]
        instructions = [*orders, *orders, *(Instruction(f"order-{number}") for number in range(1, 30, 2))]
        chance.shuffle(instructions)
        start.wait()
        while instructions:
            size = chance.randint(1, 16)
            applied(stock_room, *instructions[:size])
            del instructions[:size]

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    shipments = [stock_room.find_shipment(f"order-{number}") for number in range(30)]
    taken = sum(shipment is not None and shipment.state is SHIPPED for shipment in shipments)
    assert stock_room.find_stock("tea") == stock_room.find_stock("cup") == 20 - taken
    assert all(shipment and shipment.state is not SHIPPED for shipment in shipments[1::2])


def test_a_stock_that_cannot_be_written_ships_nothing(stock_room: SqlStockRoom, engine: Engine) -> None:
    stock_room.set_stock("tea", 3)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE shipment_lines RENAME TO gone"))
    with pytest.raises(DatabaseUnavailable):
        applied(stock_room, to_ship("order-1", tea=2))
    assert (stock_room.find_stock("tea"), stock_room.find_shipment("order-1")) == (3, None)


def test_messages_are_counted_by_the_state_of_the_shipment_after_the_commit(sqlite_engine: Engine) -> None:
    registry = CollectorRegistry()
    room = SqlStockRoom(sqlite_engine, World(), message_counter(registry))
    shipped(room, created("1"), cancelled("1"))
    room.store([created("2")])

    def ship_and_fail(session: Session, messages: Sequence[InboxMessage]) -> None:
        Shipping(room).ship(session, messages)
        raise RuntimeError("the transaction is rolled back")

    assert room.inbox.drain(ship_and_fail).failed == 1
    counts = [
        registry.get_sample_value("inventory_messages_total", {"message": message, "state": state})
        for message, state in [("created", "SHIPPED"), ("cancelled", "RETURNED"), ("created", "SHORT")]
    ]
    assert counts == [1, 1, None]


QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.mark.parametrize("table", ["shipments", "rocketmq_inbox"])
@pytest.mark.parametrize("is_processed", [True, False])
def test_a_stored_message_is_found_in_the_inbox_or_as_a_shipment(
    stock_room: SqlStockRoom, engine: Engine, table: str, is_processed: bool
) -> None:
    messages = [created("1"), cancelled("1"), created("2"), cancelled("3")]
    if is_processed:
        shipped(stock_room, *messages)
    else:
        stock_room.store(messages)
    assert stock_room.positions.save({QUEUE: 4}) == {}
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM shipment_lines"))
        connection.execute(text(f"DELETE FROM {table}"))
    is_lost = (table == "shipments") is is_processed
    assert (stock_room.positions.save({QUEUE: 5}) != {}) is is_lost


def test_an_order_that_is_still_shipped_shows_that_its_cancellation_is_lost(stock_room: SqlStockRoom, engine: Engine) -> None:
    shipped(stock_room, created("1"), cancelled("1"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE shipments SET state = 'SHIPPED'"))
    assert stock_room.positions.save({QUEUE: 2}) == {QUEUE: None}


def test_the_migrations_make_the_tables_that_the_code_uses(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "inventory_service_version"})
        assert compare_metadata(context, InventoryDatabase.metadata) == []
