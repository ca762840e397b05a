"""Tests of database rules that refuse rows.

If all rows are refused, messages wait. If only some rows are refused, their messages are parked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine, text

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.domain.shipment import ShipmentState
from inventory_service.service_layer.shipping import Shipping
from rocketmq_broker.databases.inbox import DrainResult
from rocketmq_broker.message import MessageExt
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.database.engine import create_database_engine
from tests.component.inventory_service.conftest import cancelled, created
from tests.database_rules import NAMES, rule_of, service_url
from tests.passing_time import Clock

MAX_TRIES = 3
LARGEST = 5
TOO_NARROW = "ALTER TABLE shipment_lines ALTER COLUMN article TYPE {0}"


@dataclass(slots=True)
class Warehouse:
    """The inbox and the stock of a service, with a clock that the test can advance."""

    stock_room: SqlStockRoom
    clock: Clock
    shipping: Shipping = field(init=False)  # type: ignore[type-arg]

    def __post_init__(self) -> None:
        self.shipping = Shipping(self.stock_room)

    def drain(self, *messages: MessageExt) -> DrainResult:
        """Stores the messages, and processes the messages that are due."""
        self.stock_room.store(messages)
        return self.stock_room.inbox.drain(self.shipping.ship, max_tries=MAX_TRIES)

    def is_shipped(self, order_id: str) -> bool:
        shipment = self.stock_room.find_shipment(order_id)
        return shipment is not None and shipment.state is ShipmentState.SHIPPED


@pytest.fixture
def warehouse(database_url: str, engine: Engine) -> Iterator[Warehouse]:
    opened, clock = create_database_engine(service_url(database_url)), Clock()
    warehouse = Warehouse(SqlStockRoom(opened, clock.world()), clock)
    warehouse.stock_room.set_stock("tea", 1000)
    yield warehouse
    opened.dispose()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("some")])
def test_a_rule_that_refuses_every_shipment_costs_time_and_no_attempt(warehouse: Warehouse, engine: Engine, name: str) -> None:
    rule = rule_of(engine, name, "shipment_lines", "quantity", LARGEST, too_narrow=TOO_NARROW)
    rule.is_set_up(engine)
    orders = [f"order-{number}" for number in range(4)]
    warehouse.drain(*(created(order_id) for order_id in orders))
    for _ in range(2 * MAX_TRIES):
        warehouse.clock.pass_s(60)
        assert warehouse.drain().parked == 0
    state = warehouse.stock_room.inbox.state()
    assert (state.waiting, state.suspected, warehouse.stock_room.find_stock("tea")) == (4, 0, 1000)
    rule.is_mended(engine)
    warehouse.clock.pass_s(60)
    assert warehouse.drain().handled == 4
    assert all(map(warehouse.is_shipped, orders))
    assert warehouse.stock_room.find_stock("tea") == 996


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("some")])
def test_a_row_that_is_refused_waits_alone_and_is_parked_and_blocks_no_other(
    warehouse: Warehouse, engine: Engine, name: str
) -> None:
    rule = rule_of(engine, name, "shipment_lines", "quantity", LARGEST, too_narrow=TOO_NARROW)
    rule.is_set_up(engine)
    first = warehouse.drain(created("large", {"tea": LARGEST + 1}), *(created(f"small-{number}") for number in range(5)))
    assert (first.handled, first.failed) == (5, 1)
    drains = 0
    while not warehouse.stock_room.inbox.state().parked:
        warehouse.clock.pass_s(60)
        drains += 1
        assert warehouse.drain(created(f"next-{drains}")).handled == 1
    assert drains == MAX_TRIES
    assert warehouse.stock_room.find_shipment("large") is None
    assert warehouse.stock_room.find_stock("tea") == 1000 - 5 - drains
    rule.is_mended(engine)
    assert warehouse.stock_room.inbox.retry() == 1
    warehouse.drain()
    assert warehouse.is_shipped("large")


def test_cancellations_do_not_show_that_orders_can_be_shipped(warehouse: Warehouse, engine: Engine) -> None:
    rule_of(engine, "raising trigger", "shipment_lines", "quantity", LARGEST, too_narrow=TOO_NARROW).is_set_up(engine)
    warehouse.drain(created("1"))
    for number in range(2 * MAX_TRIES):
        warehouse.clock.pass_s(60)
        assert warehouse.drain(cancelled(f"unheard-of-{number}")).handled == 1
    state = warehouse.stock_room.inbox.state()
    assert (state.failed, state.suspected, state.parked) == (1, 0, 0)


def test_a_stock_that_would_become_negative_is_refused_by_the_database(warehouse: Warehouse, engine: Engine) -> None:
    """The constraint CHECK (available >= 0) refuses a negative stock."""
    warehouse.stock_room.set_stock("tea", 0)
    with pytest.raises(DatabaseFailure), warehouse.stock_room.inbox._transaction() as session:
        session.connection().execute(text("UPDATE stock SET available = available - 1"))
    assert warehouse.stock_room.find_stock("tea") == 0
