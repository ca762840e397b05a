import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from prometheus_client import CollectorRegistry
from sqlalchemy import Engine, text

from inventory_service.adapters.inventory_metrics import CountedStockRoom
from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import InventoryDatabase
from inventory_service.domain.shipment import Shipment, ShipmentLine, ShipmentState
from service_runtime.database.database_errors import DatabaseUnavailable

SHIPPED, SHORT, RETURNED, CALLED_OFF = ShipmentState


def test_an_order_takes_what_it_wants_from_the_stock(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 5)
    shipped = stock_room.ship("order-1", [ShipmentLine("tea", 2), ShipmentLine("download", 1), ShipmentLine("tea", 1)])
    assert shipped == Shipment("order-1", SHIPPED) == stock_room.find_shipment("order-1")
    assert (stock_room.find_stock("tea"), stock_room.find_stock("download")) == (2, None)


def test_an_order_that_is_short_takes_nothing_at_all(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("cup", 9)
    stock_room.set_stock("tea", 1)
    assert stock_room.ship("order-1", [ShipmentLine("cup", 2), ShipmentLine("tea", 2)]) == Shipment("order-1", SHORT, "tea")
    assert (stock_room.find_stock("cup"), stock_room.find_stock("tea")) == (9, 1)


def test_a_redelivery_ships_nothing_twice_and_finds_the_same_shortage(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 3)
    for _ in range(3):
        assert stock_room.ship("order-1", [ShipmentLine("tea", 2)]).state is SHIPPED
        assert stock_room.ship("order-2", [ShipmentLine("tea", 2)]) == Shipment("order-2", SHORT, "tea")
    stock_room.set_stock("tea", 100)
    assert stock_room.ship("order-2", [ShipmentLine("tea", 2)]) == Shipment("order-2", SHORT, "tea")
    assert stock_room.find_stock("tea") == 100


def test_a_cancelled_order_comes_back_into_stock_once(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 3)
    stock_room.ship("order-1", [ShipmentLine("tea", 2)])
    assert [stock_room.call_off("order-1").state for _ in range(3)] == [RETURNED] * 3
    assert stock_room.find_stock("tea") == 3
    assert stock_room.ship("order-1", [ShipmentLine("tea", 2)]).state is RETURNED
    assert stock_room.find_stock("tea") == 3


def test_a_cancellation_that_comes_before_its_order_keeps_it_from_being_shipped(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 3)
    assert stock_room.call_off("order-1").state is CALLED_OFF
    assert stock_room.ship("order-1", [ShipmentLine("tea", 2)]).state is CALLED_OFF
    assert stock_room.find_stock("tea") == 3


def test_an_order_that_was_short_stays_so_when_it_is_cancelled(stock_room: SqlStockRoom) -> None:
    stock_room.set_stock("tea", 0)
    stock_room.ship("order-1", [ShipmentLine("tea", 2)])
    assert stock_room.call_off("order-1") == Shipment("order-1", SHORT, "tea")
    assert stock_room.find_stock("tea") == 0


def test_many_orders_at_once_never_ship_more_than_there_is(stock_room: SqlStockRoom) -> None:
    """Also where each message is delivered twice and half of the orders are cancelled meanwhile."""
    for article in ("tea", "cup"):
        stock_room.set_stock(article, 20)
    start = threading.Barrier(4)

    def work(seed: int) -> None:
        deeds = [(number, is_created) for number in range(30) for is_created in (True, True, number % 2 == 0)]
        random.Random(seed).shuffle(deeds)
        start.wait()
        for number, is_created in deeds:
            if is_created:
                stock_room.ship(f"order-{number}", [ShipmentLine("tea", 1), ShipmentLine("cup", 1)][:: 1 if seed % 2 else -1])
            else:
                stock_room.call_off(f"order-{number}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    shipments = [stock_room.find_shipment(f"order-{number}") for number in range(30)]
    shipped = sum(shipment is not None and shipment.state is SHIPPED for shipment in shipments)
    assert stock_room.find_stock("tea") == stock_room.find_stock("cup") == 20 - shipped
    assert all(shipment and shipment.state is not SHIPPED for shipment in shipments[1::2])


def test_a_stock_that_cannot_be_written_ships_nothing(stock_room: SqlStockRoom, engine: Engine) -> None:
    stock_room.set_stock("tea", 3)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE shipment_lines RENAME TO gone"))
    with pytest.raises(DatabaseUnavailable):
        stock_room.ship("order-1", [ShipmentLine("tea", 2)])
    assert (stock_room.find_stock("tea"), stock_room.find_shipment("order-1")) == (3, None)


def test_messages_are_counted_by_how_the_shipment_stands_then(sqlite_stock_room: SqlStockRoom) -> None:
    registry = CollectorRegistry()
    room = CountedStockRoom(sqlite_stock_room, registry)
    room.ship("order-1", [ShipmentLine("tea", 1)])
    room.call_off("order-1")
    counts = [
        registry.get_sample_value("inventory_messages_total", {"message": message, "state": state})
        for message, state in [("created", "SHIPPED"), ("cancelled", "RETURNED"), ("created", "SHORT")]
    ]
    assert counts == [1, 1, None]


def test_the_migrations_make_the_tables_that_the_code_uses(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "inventory_service_version"})
        assert compare_metadata(context, InventoryDatabase.metadata) == []
