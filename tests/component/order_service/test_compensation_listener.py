from collections.abc import Callable

import pytest

from order_messages import credit_refused
from order_messages.credit_refused import CreditRefused
from order_messages.states import OrderState
from order_messages.stock_short import TOPIC, StockShort
from order_service.adapters.order_store import SqlOrderStore
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.compensation_listener import CompensationListener
from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.message.record import Record, to_message
from tests.component.order_service.conftest import DEADLINE_MS, BrokerInProcess, a_later_order, an_order, lose_connection


def a_message(body: bytes, topic: str = TOPIC) -> MessageExt:
    record = Record(0, 0, 0, 0, 0, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, topic.encode(), b"UNIQ_KEY\x01id")
    return to_message(record)


def short(order_id: str = "order-1", missing: str = "tea") -> MessageExt:
    return a_message(StockShort(version=1, order_id=order_id, missing=missing).encode())


def refused(order_id: str = "order-1", reason: str = "its task fails") -> MessageExt:
    return a_message(CreditRefused(version=1, order_id=order_id, reason=reason).encode(), credit_refused.TOPIC)


def a_context() -> ConsumeContext:
    return ConsumeContext(MessageQueue(TOPIC, "broker-a", 0))


def after_a_pause(cancelling: OrderCancelling, recover: Callable[[], object]) -> CompensationListener:
    """Returns a listener whose first pause ends the outage."""

    def hold(_: ConsumeContext, __: float) -> None:
        recover()

    return CompensationListener(cancelling, hold)


def no_hold(_: ConsumeContext, __: float) -> None:
    pytest.fail("nothing had to be held")


@pytest.fixture
def cancelling(sqlite_store: SqlOrderStore, broker: BrokerInProcess) -> OrderCancelling:
    return OrderCancelling(sqlite_store, broker, lambda: DEADLINE_MS)


@pytest.mark.parametrize(
    ("first", "second", "because"),
    [(short(), refused(), "out of stock: tea"), (refused(), short(), "not credited: its task fails")],
)
def test_an_order_that_is_short_or_cannot_be_credited_is_cancelled_once_however_often_it_is_told(
    sqlite_store: SqlOrderStore,
    cancelling: OrderCancelling,
    broker: BrokerInProcess,
    first: MessageExt,
    second: MessageExt,
    because: str,
) -> None:
    sqlite_store.store_order(an_order(), "transaction-1")
    listener = CompensationListener(cancelling, no_hold)
    for batch in ([first, first, second], [first]):
        assert listener(batch, a_context()) is ConsumeStatus.CONSUME_SUCCESS
    order = sqlite_store.find_order("order-1")
    assert order is not None
    assert (order.state, order.ended_because) == (OrderState.CANCELLED, because)
    assert [message.topic for message, _ in broker.decisions] == ["order_cancellations"]


def test_a_broker_that_is_away_holds_the_shortage(
    sqlite_store: SqlOrderStore, cancelling: OrderCancelling, broker: BrokerInProcess
) -> None:
    sqlite_store.store_order(an_order(), "transaction-1")
    broker.is_up = False
    listener = after_a_pause(cancelling, lambda: setattr(broker, "is_up", True))
    assert listener([short()], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert getattr(sqlite_store.find_order("order-1"), "state", None) is OrderState.CANCELLED


def test_a_cancellation_whose_outcome_is_unknown_is_tried_again_until_it_is_known(
    sqlite_store: SqlOrderStore, cancelling: OrderCancelling, broker: BrokerInProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_store.store_order(an_order(), "transaction-1")
    with monkeypatch.context() as patch:
        patch.setattr(SqlOrderStore, "store_cancellation", lose_connection)
        after_a_pause(cancelling, patch.undo)([short()], a_context())
    assert getattr(sqlite_store.find_order("order-1"), "state", None) is OrderState.CANCELLED
    assert len(broker.decisions) == 2


def test_an_order_that_is_at_its_end_already_is_left_there(
    sqlite_store: SqlOrderStore, cancelling: OrderCancelling, broker: BrokerInProcess
) -> None:
    sqlite_store.store_order(a_later_order(), "transaction-1")
    CompensationListener(cancelling, no_hold)([short()], a_context())
    assert getattr(sqlite_store.find_order("order-1"), "state", None) is OrderState.EXPIRED
    assert broker.decisions == []


@pytest.mark.parametrize("message", [short("nobody's"), refused("nobody's")])
def test_a_compensating_message_of_an_order_that_the_database_lacks_comes_again(
    cancelling: OrderCancelling, message: MessageExt, sqlite_store: SqlOrderStore
) -> None:
    context = a_context()
    assert CompensationListener(cancelling, no_hold)([message], context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {0: None}
    sqlite_store.store_order(an_order("nobody's"), "transaction-1")
    context = a_context()
    assert CompensationListener(cancelling, no_hold)([message], context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {}
    assert getattr(sqlite_store.find_order("nobody's"), "state", None) is OrderState.CANCELLED


@pytest.mark.parametrize("message", [a_message(b"{"), a_message(b"{}", credit_refused.TOPIC)])
def test_a_compensating_message_that_cannot_be_read_goes_to_the_dead_letters(
    cancelling: OrderCancelling, message: MessageExt
) -> None:
    context = a_context()
    assert CompensationListener(cancelling, no_hold)([message], context) is ConsumeStatus.CONSUME_SUCCESS
    assert context.postponed == {0: -1}


def test_the_name_of_a_missing_article_may_be_as_long_as_names_are(
    sqlite_store: SqlOrderStore, cancelling: OrderCancelling
) -> None:
    sqlite_store.store_order(an_order(), "transaction-1")
    CompensationListener(cancelling, no_hold)([short(missing="x" * 200)], a_context())
    assert len(getattr(sqlite_store.find_order("order-1"), "ended_because", "")) == 200
