import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.domain.shipment import Shipment, ShipmentLine, ShipmentState
from inventory_service.service_layer.order_listener import ShippingListener
from inventory_service.service_layer.ports import ShortageNotTold, StockRoom
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from service_runtime.database.database_errors import DatabaseUnavailable, OutcomeUnknown
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from tests.component.inventory_service.conftest import a_context, a_message, cancelled, created


@dataclass(slots=True)
class Teller:
    """Remembers what it told; fails as often as it is said to."""

    failures: int = 0
    told: list[tuple[str, str]] = field(default_factory=list)

    def tell(self, order_id: str, missing: str) -> None:
        if self.failures:
            self.failures -= 1
            raise ShortageNotTold("the broker is away")
        self.told.append((order_id, missing))


def a_listener(room: StockRoom, teller: Teller, hold: Callable[[ConsumeContext, float], None]) -> ShippingListener:
    return ShippingListener(room, teller, Doubts(Holds(now_s=time.monotonic), 4, time.monotonic), hold)


def no_hold(_: ConsumeContext, __: float) -> None:
    pytest.fail("nothing had to be held")


def test_orders_are_shipped_and_cancelled_ones_taken_back(sqlite_stock_room: SqlStockRoom) -> None:
    sqlite_stock_room.set_stock("tea", 3)
    teller = Teller()
    listener = a_listener(sqlite_stock_room, teller, no_hold)
    assert listener([created("1", {"tea": 2})], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert sqlite_stock_room.find_stock("tea") == 1
    assert listener([cancelled("1")], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert (sqlite_stock_room.find_stock("tea"), teller.told) == (3, [])


def test_a_shortage_is_told_again_with_each_redelivery(sqlite_stock_room: SqlStockRoom) -> None:
    """The consumer may have died after the first time, before or after the message was sent."""
    sqlite_stock_room.set_stock("tea", 1)
    teller = Teller()
    for _ in range(2):
        a_listener(sqlite_stock_room, teller, no_hold)([created("1", {"tea": 2})], a_context())
    assert teller.told == [("1", "tea")] * 2


def test_a_shortage_that_cannot_be_told_holds_the_message(sqlite_stock_room: SqlStockRoom) -> None:
    sqlite_stock_room.set_stock("tea", 1)
    teller, pauses = Teller(failures=3), list[float]()
    listener = a_listener(sqlite_stock_room, teller, lambda _, seconds: pauses.append(seconds))
    context = a_context()
    assert listener([created("1", {"tea": 2})], context) is ConsumeStatus.CONSUME_SUCCESS
    assert (teller.told, pauses, context.postponed) == ([("1", "tea")], [0.5, 1, 2], {})


@dataclass(slots=True)
class TroubledStockRoom(StockRoom):
    """Raises these errors one after the other, and works then."""

    errors: list[Exception]

    def ship(self, order_id: str, lines: Sequence[ShipmentLine]) -> Shipment:
        if self.errors:
            raise self.errors.pop(0)
        return Shipment(order_id, ShipmentState.SHIPPED)


def test_a_database_that_is_away_holds_the_message_and_spends_no_redelivery() -> None:
    room, pauses = TroubledStockRoom([DatabaseUnavailable("gone"), OutcomeUnknown("gone")]), list[float]()
    context = a_context()
    listener = a_listener(room, Teller(), lambda _, seconds: pauses.append(seconds))
    assert listener([created()], context) is ConsumeStatus.CONSUME_SUCCESS
    assert (pauses, context.postponed) == ([0.5, 1], {})


def test_a_mistake_of_ours_is_not_taken_for_an_outage() -> None:
    with pytest.raises(ZeroDivisionError):
        a_listener(TroubledStockRoom([ZeroDivisionError()]), Teller(), no_hold)([created()], a_context())


@pytest.mark.parametrize("make", [lambda: a_message(b"{"), lambda: a_message(b"{}", "order_cancellations")])
def test_what_cannot_be_read_goes_to_the_dead_letters_and_troubles_nobody_else(
    sqlite_stock_room: SqlStockRoom, make: Callable[[], object]
) -> None:
    context = a_context()
    messages = [make(), created("2")]
    assert a_listener(sqlite_stock_room, Teller(), no_hold)(messages, context) is ConsumeStatus.CONSUME_SUCCESS  # type: ignore[arg-type]
    assert context.postponed == {0: -1}
    assert sqlite_stock_room.find_shipment("2") is not None
