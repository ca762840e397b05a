"""Tests the consumer of a service with an inbox. The test chooses the results of its push consumer."""

from collections.abc import Iterator
from typing import Any

import pytest

from rocketmq_broker.client import ClientError, ConsumeContext, ConsumeFromWhere, ConsumeStatus, EventLoopThread
from rocketmq_broker.message import MessageExt
from service_runtime.inbox import inbox_listener
from service_runtime.messaging.consumer_thread import ConsumerThread


class Consumer:
    """The part of a PushConsumer that ConsumerThread uses. Each result is a value, or an error to raise."""

    def __init__(self, group: str, **settings: Any) -> None:
        self.group = group
        self.settings = settings
        self.events: list[object] = []
        self.answer: object = True

    def subscribe(self, topic: str, expression: str) -> None:
        self.events.append((topic, expression))

    def register_message_listener(self, listener: object) -> None:
        self.events.append(listener)

    async def start(self) -> None:
        self.events.append("started")

    async def shutdown(self, timeout_s: float) -> None:
        self.events.append(f"shut down within {timeout_s:g} s")
        self._answer()

    async def is_connected_to_any(self) -> object:
        return self._answer()

    @property
    def progress(self) -> object:
        return self._answer()

    def _answer(self) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def listener(_messages: list[MessageExt], _context: ConsumeContext) -> ConsumeStatus:
    return ConsumeStatus.CONSUME_SUCCESS


TAGS = {"orders": "created", "cancellations": "cancelled"}
RESULTS: Any = object()
"""The positions in the database."""


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConsumerThread]:
    monkeypatch.setattr(inbox_listener, "PushConsumer", Consumer)
    loop = EventLoopThread()
    made = inbox_listener.inbox_consumer("credits", TAGS, listener, namesrv_addr="127.0.0.1:1", loop=loop, results=RESULTS)
    made.start()
    yield made
    made.stop(1)


@pytest.fixture
def consumer(orders: ConsumerThread) -> Consumer:
    found = orders._consumer
    assert isinstance(found, Consumer)
    return found


def test_it_listens_to_new_orders_before_it_starts(consumer: Consumer) -> None:
    assert consumer.group == "credits"
    assert consumer.events == [("orders", "created"), ("cancellations", "cancelled"), listener, "started"]


def test_a_new_group_begins_with_the_first_order_and_pulls_one_batch_and_keeps_positions_in_the_database(
    consumer: Consumer,
) -> None:
    assert consumer.settings["consume_from_where"] is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    assert consumer.settings["pull_batch_size"] == consumer.settings["consume_message_batch_max_size"] == 256
    assert consumer.settings["results"] is RESULTS


def test_a_stop_leaves_time_for_the_batches_and_for_the_goodbye(orders: ConsumerThread, consumer: Consumer) -> None:
    orders.stop(10)
    assert consumer.events[-1] == "shut down within 12 s"


def test_a_goodbye_that_the_broker_does_not_take_is_logged_and_no_error(
    orders: ConsumerThread, consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    consumer.answer = ClientError("gone")
    orders.stop(0)
    assert caplog.messages == ["the consumer did not shut down cleanly: gone"]


@pytest.mark.parametrize("error", [ClientError("gone"), TimeoutError()])
def test_a_broker_that_does_not_answer_is_no_error_of_a_health_check(
    orders: ConsumerThread, consumer: Consumer, error: Exception
) -> None:
    consumer.answer = error
    assert orders.why_unready() == str(error)
    assert orders.progress() is None


def test_a_health_check_passes_on_what_the_consumer_says(orders: ConsumerThread, consumer: Consumer) -> None:
    assert orders.why_unready() is None
    consumer.answer = False
    assert orders.why_unready() == "no broker answers this consumer"
    consumer.answer = ["a queue"]
    assert orders.progress() == ["a queue"]  # type: ignore[comparison-overlap]
