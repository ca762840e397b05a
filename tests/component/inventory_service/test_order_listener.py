import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.domain.shipment import Shipment, ShipmentLine, ShipmentState
from inventory_service.service_layer.order_listener import ShippingListener
from inventory_service.service_layer.ports import ShortageNotReported, StockRoom
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from service_runtime.database.database_errors import DatabaseUnavailable, OutcomeUnknown
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from tests.component.inventory_service.conftest import a_context, a_message, cancelled, created


@dataclass(slots=True)
class Reporter:
    """Records reports; the first `failures` calls fail."""

    failures: int = 0
    reported: list[tuple[str, str]] = field(default_factory=list)

    def report(self, order_id: str, missing: str) -> None:
        if self.failures:
            self.failures -= 1
            raise ShortageNotReported("the broker is away")
        self.reported.append((order_id, missing))


def a_listener(room: StockRoom, reporter: Reporter, hold: Callable[[ConsumeContext, float], None]) -> ShippingListener:
    return ShippingListener(room, reporter, Doubts(Holds(now_s=time.monotonic), 4, time.monotonic), hold)


def no_hold(_: ConsumeContext, __: float) -> None:
    pytest.fail("nothing had to be held")


def test_orders_are_shipped_and_cancelled_ones_taken_back(sqlite_stock_room: SqlStockRoom) -> None:
    sqlite_stock_room.set_stock("tea", 3)
    reporter = Reporter()
    listener = a_listener(sqlite_stock_room, reporter, no_hold)
    assert listener([created("1", {"tea": 2})], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert sqlite_stock_room.find_stock("tea") == 1
    assert listener([cancelled("1")], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert (sqlite_stock_room.find_stock("tea"), reporter.reported) == (3, [])


def test_a_shortage_is_told_again_with_each_redelivery(sqlite_stock_room: SqlStockRoom) -> None:
    """The consumer may have died after the first time, before or after the message was sent."""
    sqlite_stock_room.set_stock("tea", 1)
    reporter = Reporter()
    for _ in range(2):
        a_listener(sqlite_stock_room, reporter, no_hold)([created("1", {"tea": 2})], a_context())
    assert reporter.reported == [("1", "tea")] * 2


def test_a_shortage_that_cannot_be_told_holds_the_message(sqlite_stock_room: SqlStockRoom) -> None:
    sqlite_stock_room.set_stock("tea", 1)
    reporter, pauses = Reporter(failures=3), list[float]()
    listener = a_listener(sqlite_stock_room, reporter, lambda _, seconds: pauses.append(seconds))
    context = a_context()
    assert listener([created("1", {"tea": 2})], context) is ConsumeStatus.CONSUME_SUCCESS
    assert (reporter.reported, pauses, context.postponed) == ([("1", "tea")], [0.5, 1, 2], {})


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
    listener = a_listener(room, Reporter(), lambda _, seconds: pauses.append(seconds))
    assert listener([created()], context) is ConsumeStatus.CONSUME_SUCCESS
    assert (pauses, context.postponed) == ([0.5, 1], {})


def test_a_mistake_of_ours_is_not_taken_for_an_outage() -> None:
    with pytest.raises(ZeroDivisionError):
        a_listener(TroubledStockRoom([ZeroDivisionError()]), Reporter(), no_hold)([created()], a_context())


@pytest.mark.parametrize("make", [lambda: a_message(b"{"), lambda: a_message(b"{}", "order_cancellations")])
def test_what_cannot_be_read_goes_to_the_dead_letters_and_troubles_nobody_else(
    sqlite_stock_room: SqlStockRoom, make: Callable[[], object]
) -> None:
    context = a_context()
    messages = [make(), created("2")]
    assert a_listener(sqlite_stock_room, Reporter(), no_hold)(messages, context) is ConsumeStatus.CONSUME_SUCCESS  # type: ignore[arg-type]
    assert context.postponed == {0: -1}
    assert sqlite_stock_room.find_shipment("2") is not None
