"""The order service's listeners behind Apache's own Python client, on a broker whose time belongs to the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from importlib import import_module
from pathlib import Path

import pytest

from order_messages import order_created, stock_short
from order_messages.states import OrderState, TransactionState
from order_messages.stock_short import StockShort
from order_service.adapters.apache_order_broker import ApacheOrderBroker
from order_service.adapters.compensation_consumer import compensation_consumer
from order_service.adapters.failing_network import FailingNetwork
from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.order import Order
from order_service.service_layer.attempt import Attempt, AttemptProgress, Outcome, TransactionFailed
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.compensation_listener import CompensationListener
from order_service.service_layer.failpoints import FailingTransactionListener
from order_service.service_layer.order_message import cancellation_message, order_message
from order_service.service_layer.sending import send_attempt
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import EventLoopThread, LocalTransactionState, TransactionListener
from rocketmq_broker.message import Message
from rocketmq_broker.testing import SyncRocketMQ
from rocketmq_broker.world import World
from service_runtime.failing.armed_failpoints import ArmedFailpoints, read_hits
from tests.component.order_service.conftest import ORDER_LIMIT_CENTS, a_cancellation, an_order, migrations, sqlite_store
from tests.waiting import wait_until

__all__ = ["migrations", "sqlite_store"]

pytest.importorskip("rocketmq", reason="Apache's Python client is not installed")

HEARD_WITHIN_S = 60


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    """While a client outside is connected, time passes as it does there: a test has 20 s before a check-back comes."""
    return {"grpcServerPort": 0, "transactionTimeOut": 20_000, "transactionCheckInterval": 1000}


class GrpcShop:
    """The order service's parts around the client, with failpoints in a folder."""

    def __init__(self, rocketmq: SyncRocketMQ, store: SqlOrderStore, folder: Path, send_timeout_ms: int = 20_000) -> None:
        self.rocketmq = rocketmq
        self.store = store
        self.folder = folder
        self.checked: list[str | None] = []
        failpoints = ArmedFailpoints(folder, lambda: 1_000)
        network = FailingNetwork(failpoints)
        listeners: dict[str, TransactionListener] = {
            topic: FailingTransactionListener(listener, failpoints, network.lose_decision, lambda seconds: None)
            for topic, listener in transaction_listeners(
                store, order_limit_cents=ORDER_LIMIT_CENTS, now_ms=World().wall_ms
            ).items()
        }
        endpoints = str(rocketmq.grpc_endpoint)
        self.broker = ApacheOrderBroker(listeners, endpoints=endpoints, send_timeout_ms=send_timeout_ms, network=network)

    def arm(self, *names: str) -> None:
        for name in names:
            (self.folder / name).write_text("ada")

    @property
    def hits(self) -> list[str]:
        return [hit.failpoint for hit in read_hits(self.folder)]

    def place(self, order: Order) -> AttemptProgress:
        return send_attempt(self.broker, order_message(order), Attempt(order), self.store.witness())

    def wait_for_check_back(self, is_done: Callable[[], bool]) -> None:
        self.rocketmq.advance(seconds=20)
        self.rocketmq.wait_until(is_done, seconds=HEARD_WITHIN_S, what="a check-back by gRPC")


@pytest.fixture
def shop(
    rocketmq: SyncRocketMQ, sqlite_store: SqlOrderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GrpcShop]:
    monkeypatch.setenv("HOME", str(tmp_path))  # the client writes its log there
    made = GrpcShop(rocketmq, sqlite_store, tmp_path)
    made.broker.start()
    yield made
    made.broker.stop()


def test_an_order_is_sent_stored_and_committed(shop: GrpcShop) -> None:
    progress = shop.place(an_order())
    assert progress.outcome is Outcome.STORED
    assert progress.transaction_id is not None
    assert shop.store.find_transaction(progress.transaction_id) is TransactionState.COMMITTED
    (message,) = shop.rocketmq.messages("orders")
    sent = order_message(an_order())
    assert (message.body, message.tags, message.keys) == (sent.body, order_created.TAG, ("order-1",))
    assert message.message_id == progress.transaction_id
    assert shop.rocketmq.pending() == []


def test_an_order_above_the_limit_is_rolled_back(shop: GrpcShop) -> None:
    progress = shop.place(an_order(price_cents=ORDER_LIMIT_CENTS))
    assert progress.outcome is Outcome.REFUSED
    assert (shop.rocketmq.messages("orders"), shop.rocketmq.pending()) == ([], [])


def test_a_cancellation_goes_to_its_own_topic(shop: GrpcShop) -> None:
    shop.place(an_order())
    cancellation = a_cancellation()
    progress = send_attempt(shop.broker, cancellation_message(cancellation), Attempt(cancellation), shop.store.witness())
    assert progress.outcome is Outcome.STORED
    assert len(shop.rocketmq.messages("order_cancellations")) == 1


def test_a_lost_commit_is_brought_by_a_check_back(shop: GrpcShop) -> None:
    shop.arm("lose-commit")
    progress = shop.place(an_order())
    assert progress.outcome is Outcome.STORED
    assert [one.transaction_id for one in shop.rocketmq.pending()] == [progress.transaction_id]
    shop.wait_for_check_back(lambda: bool(shop.rocketmq.messages("orders")))
    assert (len(shop.rocketmq.messages("orders")), shop.rocketmq.pending()) == (1, [])


def test_a_decision_whose_answer_does_not_come_is_brought_by_a_check_back(shop: GrpcShop) -> None:
    impatient = GrpcShop(shop.rocketmq, shop.store, shop.folder, send_timeout_ms=1000)
    impatient.broker.start()
    impatient.place(an_order())
    shop.rocketmq.lose_next_decision()
    progress = impatient.place(an_order("order-2"))
    assert progress.outcome is Outcome.STORED
    assert [one.transaction_id for one in shop.rocketmq.pending()] == [progress.transaction_id]
    impatient.wait_for_check_back(lambda: not shop.rocketmq.pending())
    impatient.broker.stop()


@pytest.mark.parametrize("failpoint", ["lose-check-back", "lose-check-back-answer"])
def test_after_a_check_back_or_its_answer_is_lost_the_broker_asks_again(failpoint: str, shop: GrpcShop) -> None:
    shop.arm("lose-commit", failpoint)
    shop.place(an_order())
    shop.wait_for_check_back(lambda: bool(shop.rocketmq.messages("orders")))
    assert shop.hits == ["lose-commit", failpoint]


@pytest.mark.parametrize("failpoint", ["lose-half-message", "lose-half-message-answer"])
def test_a_half_message_that_nobody_knows_of_is_no_order_and_is_rolled_back(failpoint: str, shop: GrpcShop) -> None:
    shop.arm(failpoint)
    with pytest.raises(TransactionFailed, match="nothing was ordered"):
        shop.place(an_order())
    assert len(shop.rocketmq.pending()) == (failpoint == "lose-half-message-answer")
    shop.wait_for_check_back(lambda: not shop.rocketmq.pending())
    assert (shop.store.find_order("order-1"), shop.rocketmq.messages("orders")) == (None, [])


def test_an_answer_that_is_really_lost_leaves_two_half_messages_of_one_transaction(shop: GrpcShop) -> None:
    """Apache's client sends again under the same id: both are committed, and consumers get the message twice."""
    impatient = GrpcShop(shop.rocketmq, shop.store, shop.folder, send_timeout_ms=1000)
    impatient.broker.start()
    shop.rocketmq.lose_next_answer()
    progress = impatient.place(an_order())
    assert progress.outcome is Outcome.STORED
    shop.wait_for_check_back(lambda: not shop.rocketmq.pending())
    assert [message.message_id for message in shop.rocketmq.messages("orders")] == [progress.transaction_id] * 2
    impatient.broker.stop()


def test_a_listener_that_fails_leaves_the_order_to_the_check_back(
    shop: GrpcShop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def store_order(order: Order, transaction_id: str) -> None:
        raise RuntimeError("a mistake in the program")

    monkeypatch.setattr(shop.store, "store_order", store_order)
    progress = shop.place(an_order())
    assert progress.outcome is Outcome.RUNNING
    assert "the listener failed" in caplog.text
    shop.wait_for_check_back(lambda: not shop.rocketmq.pending())
    assert shop.rocketmq.messages("orders") == []


def test_a_broker_that_came_back_checks_back_at_once(shop: GrpcShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread without an event loop finds it, as in a web server, and is slower than the event loop, as on a busy machine."""
    connections = import_module("rocketmq.v5.client.connection")
    write = connections.RpcClient.telemetry_write_async

    def has_ended(*arguments: object) -> Future[None]:
        written: Future[None] = write(*arguments)
        wait([written], HEARD_WITHIN_S)
        return written

    monkeypatch.setattr(connections.RpcClient, "telemetry_write_async", has_ended)
    assert shop.broker.why_unready() is None
    shop.arm("lose-commit")
    shop.place(an_order())
    shop.rocketmq.crash()
    assert shop.broker.why_unready()
    shop.rocketmq.restart()
    with ThreadPoolExecutor(max_workers=1) as threads:
        wait_until(lambda: threads.submit(shop.broker.why_unready).result() is None)
    shop.wait_for_check_back(lambda: bool(shop.rocketmq.messages("orders")))


def test_an_order_that_is_short_is_cancelled_by_a_message_that_comes_with_apaches_client(shop: GrpcShop) -> None:
    shop.place(an_order())
    cancelling = OrderCancelling(shop.store, shop.broker, World().wall_ms)
    consumer = compensation_consumer(
        CompensationListener(cancelling),
        namesrv_addr="127.0.0.1:1",
        grpc_endpoints=str(shop.rocketmq.grpc_endpoint),
        loop=EventLoopThread(),
    )
    consumer.start()
    shortage = StockShort(version=1, order_id="order-1", missing="tea")
    shop.rocketmq.producer("inventory_service").send(Message.of(stock_short.TOPIC, shortage.encode(), tags=stock_short.TAG))
    wait_until(lambda: bool(shop.rocketmq.messages("order_cancellations")))
    order = shop.store.find_order("order-1")
    consumer.stop(10)
    assert order is not None
    assert (order.state, order.ended_because) == (OrderState.CANCELLED, "out of stock: tea")


def test_it_starts_without_a_broker_and_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    nobody = ApacheOrderBroker(
        {"orders": NeverAsked()}, endpoints="127.0.0.1:1", send_timeout_ms=1000, network=FailingNetwork(NothingFails())
    )
    nobody.start()
    assert "127.0.0.1:1" in str(nobody.why_unready())
    with pytest.raises(TransactionFailed, match="nothing was ordered"):
        nobody.send_in_transaction(order_message(an_order()), Attempt(an_order()))
    nobody.stop()


class NothingFails:
    def is_hit(self, name: str, content: bytes, transaction_id: str | None = None) -> bool:
        return False


class NeverAsked:
    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        pytest.fail("no half message is stored")

    check_local_transaction = execute_local_transaction
