"""A rule of the inventory database that refuses everything holds messages; one that refuses some parks those, and no other."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.service_layer.order_listener import ShippingListener
from rocketmq_broker.client import ConsumeContext
from rocketmq_broker.message import MessageExt
from rocketmq_broker.world import World
from service_runtime.database.engine import create_database_engine
from service_runtime.failing.holds import HoldCause, Holds
from service_runtime.failing.refusals import Doubts
from tests.component.inventory_service.conftest import a_context, cancelled, created
from tests.component.inventory_service.test_order_listener import Reporter
from tests.database_rules import rules, service_url

RULED_S = 150.0
LARGEST = 5
TOO_NARROW = "ALTER TABLE shipment_lines ALTER COLUMN article TYPE {0}"
NAMES = sorted({name for dialect in ("sqlite", "postgresql") for name in rules(dialect, "t", "c", 0, too_narrow="")})


@dataclass(slots=True)
class Warehouse:
    """The listener of one process, whose time passes when it waits; `meanwhile` is done at each wait."""

    stock_room: SqlStockRoom
    threads: int = 4
    now_s: float = 0.0
    meanwhile: Callable[[], None] = lambda: None
    holds: Holds = field(init=False)
    listener: ShippingListener = field(init=False)

    def __post_init__(self) -> None:
        self.holds = Holds(now_s=lambda: self.now_s)
        doubts = Doubts(self.holds, self.threads, lambda: self.now_s)
        self.listener = ShippingListener(self.stock_room, Reporter(), doubts, self._hold)

    def consume(self, message: MessageExt) -> ConsumeContext:
        context = a_context()
        self.listener([message], context)
        return context

    def _hold(self, context: ConsumeContext, seconds: float) -> None:
        context.hold(0)
        self.now_s += seconds
        self.meanwhile()


@pytest.fixture
def warehouse(database_url: str, engine: Engine) -> Iterator[Warehouse]:
    opened = create_database_engine(service_url(database_url))
    yield Warehouse(SqlStockRoom(opened, World()))
    opened.dispose()


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_that_refuses_every_shipment_costs_time_and_one_that_refuses_some_parks_those(
    warehouse: Warehouse, engine: Engine, name: str
) -> None:
    known = rules(engine.dialect.name, "shipment_lines", "quantity", LARGEST, too_narrow=TOO_NARROW)
    if name not in known:
        pytest.skip(f"{engine.dialect.name} has no such rule: {name}")
    if "drops the row" in name:
        pytest.skip("the stock room does not read back what it inserts: the shipment's own row says that it is shipped")
    warehouse.stock_room.set_stock("tea", 1000)
    known[name].is_set_up(engine)
    is_total = not name.startswith("some")
    waits = 0

    def mend_or_pass_another() -> None:
        nonlocal waits
        waits += 1
        holding = warehouse.holds.state()
        assert holding is not None
        assert holding.cause in (HoldCause.REFUSAL, HoldCause.OUTAGE)
        if is_total and warehouse.now_s > RULED_S:
            warehouse.meanwhile = lambda: None
            known[name].is_mended(engine)
        elif not is_total and waits == 5:
            assert warehouse.consume(created("small", {"tea": 1})).postponed == {}

    warehouse.meanwhile = mend_or_pass_another
    context = warehouse.consume(created("large", {"tea": LARGEST + 1}))
    assert warehouse.holds.state() is None
    if is_total:
        assert (context.postponed, warehouse.stock_room.find_stock("tea")) == ({}, 1000 - LARGEST - 1)
        assert warehouse.now_s > RULED_S
    else:
        assert (context.postponed, warehouse.stock_room.find_shipment("large")) == ({0: -1}, None)
        assert warehouse.stock_room.find_stock("tea") == 999


def test_a_message_in_the_way_of_others_gives_way_and_spends_no_redelivery(sqlite_engine: Engine) -> None:
    warehouse = Warehouse(SqlStockRoom(sqlite_engine, World()), threads=1)
    warehouse.stock_room.set_stock("tea", 1000)
    rules("sqlite", "shipment_lines", "quantity", LARGEST, too_narrow="")["raising trigger"].is_set_up(sqlite_engine)
    context = warehouse.consume(created("1"))
    assert (context.postponed, context.given_way) == ({0: 5}, {0})


def test_neither_a_redelivery_nor_a_cancellation_shows_that_orders_can_be_shipped(sqlite_engine: Engine) -> None:
    warehouse = Warehouse(SqlStockRoom(sqlite_engine, World()))
    warehouse.stock_room.set_stock("tea", 1000)
    warehouse.consume(created("before"))
    rule = rules("sqlite", "shipment_lines", "quantity", LARGEST, too_narrow="")["raising trigger"]
    rule.is_set_up(sqlite_engine)

    def others_then_mend() -> None:
        warehouse.consume(created("before"))
        warehouse.consume(cancelled("unheard-of"))
        if warehouse.now_s > RULED_S:
            warehouse.meanwhile = lambda: None
            rule.is_mended(sqlite_engine)

    warehouse.meanwhile = others_then_mend
    assert warehouse.consume(created("after")).postponed == {}
    assert warehouse.now_s > RULED_S
