"""Queues are selected round robin, except those of brokers that failed."""

from rocketmq_broker.client.producer.queue_selection import AVOIDED_FOR_MS, QueueSelector
from rocketmq_broker.message import MessageQueue

A0, A1, B0, B1 = (MessageQueue("t", broker, number) for broker in "ab" for number in (0, 1))
ALL = [A0, A1, B0, B1]


def test_the_queues_take_turns() -> None:
    selector = QueueSelector()
    assert [selector.select(ALL, 0) for _ in range(8)] == [A1, B0, B1, A0] * 2


def test_a_broker_that_failed_for_this_message_is_passed_over() -> None:
    selector = QueueSelector()
    assert {selector.select(ALL, 0, ["a"]).broker_name for _ in range(8)} == {"b"}


def test_a_broker_that_failed_lately_is_avoided_for_other_messages_too() -> None:
    selector = QueueSelector()
    selector.broker_failed("b", now_ms=1000)
    assert {selector.select(ALL, 1000 + AVOIDED_FOR_MS - 1).broker_name for _ in range(8)} == {"a"}
    assert {selector.select(ALL, 1000 + AVOIDED_FOR_MS).broker_name for _ in range(8)} == {"a", "b"}


def test_a_broker_that_answered_again_is_no_longer_avoided() -> None:
    selector = QueueSelector()
    selector.broker_failed("b", now_ms=1000)
    selector.broker_answered("b")
    assert {selector.select(ALL, 1001).broker_name for _ in range(8)} == {"a", "b"}


def test_an_avoided_broker_is_better_than_one_that_just_failed_for_this_message() -> None:
    selector = QueueSelector()
    selector.broker_failed("b", now_ms=1000)
    assert selector.select(ALL, 1001, ["a"]).broker_name == "b"


def test_when_all_failed_one_is_chosen_all_the_same() -> None:
    selector = QueueSelector()
    assert selector.select([A0], 0, ["a"]) == A0
