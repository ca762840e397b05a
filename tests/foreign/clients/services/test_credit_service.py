"""The credit service's listener behind Apache's own Python client, on a broker whose time belongs to the test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.order_consumer import order_consumer
from credit_service.domain.credit import Credit
from credit_service.service_layer.crediting import Credited, Later
from credit_service.service_layer.order_listener import CreditingListener
from order_messages import order_cancelled, order_created
from rocketmq_broker.client import ConsumeContext, EventLoopThread, Message
from rocketmq_broker.testing import SyncRocketMQ
from service_runtime.messaging.apache_consumer import ApacheConsumer, pause_before
from service_runtime.messaging.service_consumer import ServiceConsumer
from tests.component.credit_service.conftest import ORDER, migrations, sqlite_ledger
from tests.waiting import wait_until

__all__ = ["migrations", "sqlite_ledger"]

pytest.importorskip("rocketmq", reason="Apache's Python client is not installed")

HEARD_WITHIN_S = 60


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    return {"grpcServerPort": 0}


class CreditingByHand:
    """Writes to the ledger, unless the test lets the next batches fail, give way, or wait."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.failures: list[Exception | Credited] = []
        self.batches: list[list[str]] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def credit(self, credits: Sequence[Credit], context: ConsumeContext) -> list[Credited]:
        self.batches.append([credit.order_id for credit in credits])
        while not self.may_go_on.is_set():
            context.hold(0.05)
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return [failure] * len(credits)
        return list(self._ledger.credit(credits))


class CreditShop:
    """Broker, consumer by Apache's client, and the ledger."""

    def __init__(self, rocketmq: SyncRocketMQ, ledger: Ledger) -> None:
        self.rocketmq = rocketmq
        self.ledger = ledger
        self.crediting = CreditingByHand(ledger)
        self.producer = rocketmq.producer("order_service")
        self.consumer = self.a_consumer()

    def a_consumer(self, max_reconsume_times: int = 16) -> ServiceConsumer:
        return order_consumer(
            CreditingListener(self.crediting),
            namesrv_addr="127.0.0.1:1",
            grpc_endpoints=str(self.rocketmq.grpc_endpoint),
            threads=2,
            batch_size=8,
            max_reconsume_times=max_reconsume_times,
            loop=EventLoopThread(),
        )

    def send(self, order_id: str, body: bytes | None = None) -> None:
        content = json.dumps(ORDER | {"order_id": order_id}).encode() if body is None else body
        self.producer.send(Message.of(order_created.TOPIC, content, tags=order_created.TAG, keys=[order_id]))

    def entries(self, order_id: str) -> int:
        return len(self.ledger.find_order(order_id))

    def wait(self, is_so: Callable[[], object], what: str) -> None:
        self.rocketmq.wait_until(is_so, seconds=HEARD_WITHIN_S, what=what)


@pytest.fixture
def shop(rocketmq: SyncRocketMQ, sqlite_ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CreditShop]:
    monkeypatch.setenv("HOME", str(tmp_path))  # the client writes its log there
    made = CreditShop(rocketmq, sqlite_ledger)
    yield made
    made.crediting.may_go_on.set()
    made.consumer.stop(10)


def test_an_order_and_its_cancellation_are_credited_and_acknowledged(shop: CreditShop) -> None:
    shop.consumer.start()
    shop.send("1")
    shop.wait(lambda: shop.entries("1"), "the credit")
    cancellation = {"order_id": "1", "customer": "ada", "total_cents": 2599, "currency": "EUR", "cancelled_at_ms": 2}
    body = json.dumps(cancellation | {"version": order_cancelled.VERSION, "reason": "by the customer"}).encode()
    shop.producer.send(Message.of(order_cancelled.TOPIC, body, tags=order_cancelled.TAG))
    shop.wait(lambda: shop.entries("1") == 2, "the reversal")
    assert shop.consumer.why_unready() is None
    shop.consumer.stop(10)
    shop.rocketmq.advance(minutes=3)
    shop.consumer = shop.a_consumer()
    shop.consumer.start()
    shop.send("2")
    shop.wait(lambda: shop.entries("2"), "the next credit")
    assert shop.crediting.batches == [["1"], ["1"], ["2"]]


def test_an_order_whose_listener_fails_comes_again_and_is_credited_once(shop: CreditShop) -> None:
    shop.crediting.failures = [RuntimeError("a mistake in the program"), None]
    shop.consumer.start()
    shop.send("1")
    for deliveries, pause_s in [(1, 10), (2, 20)]:
        shop.wait(lambda: len(shop.crediting.batches) == deliveries, "the delivery")  # noqa: B023
        shop.rocketmq.advance(seconds=pause_s)
    shop.wait(lambda: shop.entries("1"), "the credit")
    assert (shop.entries("1"), shop.crediting.batches) == (1, [["1"]] * 3)


def test_orders_are_credited_once_over_a_restart_of_the_broker(shop: CreditShop) -> None:
    shop.consumer.start()
    shop.crediting.may_go_on.clear()
    shop.send("1")
    shop.wait(lambda: shop.crediting.batches, "the delivery")
    shop.rocketmq.crash()
    assert shop.consumer.why_unready()
    shop.rocketmq.restart()
    wait_until(lambda: shop.consumer.why_unready() is None)
    shop.crediting.may_go_on.set()
    shop.send("2")
    shop.wait(lambda: shop.entries("1") and shop.entries("2"), "both credits")
    shop.rocketmq.advance(minutes=3)
    shop.send("3")
    shop.wait(lambda: shop.entries("3"), "the third credit")
    assert [shop.entries(order_id) for order_id in "123"] == [1, 1, 1]


def test_what_is_no_order_is_a_dead_letter_at_once_and_troubles_nobody_else(shop: CreditShop) -> None:
    shop.consumer.start()
    shop.send("1", b"{")
    shop.send("2")
    shop.wait(lambda: shop.entries("2") and shop.rocketmq.messages("%DLQ%credit_service"), "the dead letter")
    assert shop.crediting.batches == [["2"]]


def test_after_its_last_redelivery_an_order_is_a_dead_letter(shop: CreditShop) -> None:
    shop.consumer = shop.a_consumer(max_reconsume_times=0)
    shop.crediting.failures = [None]
    shop.consumer.start()
    shop.send("1")
    shop.wait(lambda: shop.rocketmq.messages("%DLQ%credit_service"), "the dead letter")
    assert (shop.entries("1"), shop.crediting.batches) == (0, [["1"]])


def test_an_order_that_gives_way_comes_again_after_a_minute(shop: CreditShop) -> None:
    shop.consumer = shop.a_consumer(max_reconsume_times=0)
    shop.crediting.failures = [Later.GAVE_WAY]
    shop.consumer.start()
    shop.send("1")
    shop.wait(lambda: shop.crediting.batches, "the delivery")
    shop.send("2")
    shop.wait(lambda: shop.entries("2"), "another order's credit")
    assert shop.entries("1") == 0
    shop.rocketmq.advance(minutes=1)
    shop.wait(lambda: shop.entries("1"), "the credit")
    assert shop.crediting.batches == [["1"], ["2"], ["1"]]


def test_an_order_that_is_held_longer_than_it_is_hidden_goes_to_nobody_else(
    shop: CreditShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service_runtime.messaging.apache_consumer._RENEW_EVERY_S", 0.05)
    shop.consumer.start()
    shop.crediting.may_go_on.clear()
    shop.send("1")
    shop.wait(lambda: shop.crediting.batches, "the delivery")
    assert isinstance(shop.consumer, ApacheConsumer)
    (batch,) = shop.consumer._batches
    (message,) = batch.messages
    for _ in range(3):
        handle = message.receipt_handle
        shop.wait(lambda: message.receipt_handle != handle, "the renewal")  # noqa: B023
        shop.rocketmq.advance(seconds=50)
    shop.crediting.may_go_on.set()
    shop.wait(lambda: shop.entries("1"), "the credit")
    shop.send("2")
    shop.wait(lambda: shop.entries("2"), "the next credit")
    assert shop.crediting.batches == [["1"], ["2"]]


def test_a_stop_lets_go_of_held_orders_and_the_next_consumer_gets_them(shop: CreditShop) -> None:
    shop.consumer.start()
    shop.crediting.may_go_on.clear()
    shop.send("1")
    shop.wait(lambda: shop.crediting.batches, "the delivery")
    shop.consumer.stop(10)
    shop.crediting.may_go_on.set()
    assert shop.entries("1") == 0
    shop.consumer = shop.a_consumer()
    shop.consumer.start()
    shop.rocketmq.advance(minutes=1)
    shop.wait(lambda: shop.entries("1"), "the credit")


def test_it_starts_without_a_broker_and_says_what_it_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    nobody = ApacheConsumer(lambda messages, context: None, {"orders": "created"}, group="g", endpoints="127.0.0.1:1", threads=1)
    assert nobody.why_unready() == "it is not started"
    nobody.start()
    assert "127.0.0.1:1" in str(nobody.why_unready())
    assert (nobody.progress(), nobody.count_dead_letters()) == (None, None)
    nobody.stop(1)


def test_pauses_double_up_to_two_hours() -> None:
    assert [pause_before(number, gives_way=False) for number in (1, 2, 3, 10, 11, 16)] == [10, 20, 40, 5120, 7200, 7200]
    assert [pause_before(number, gives_way=True) for number in (1, 2, 7, 8)] == [60, 120, 3840, 7200]
