"""Tests of the fixture `rocketmq` in synchronous tests, and of the session fixture."""

import threading
import time

import pytest

from rocketmq_broker.client import ClientError, EventLoopThread, Producer, TransactionProducer
from rocketmq_broker.testing import RocketMQ, SyncRocketMQ
from tests.unit.testing.listeners import UNKNOWN, Consumption, Transactions, order


def test_a_lost_commit_is_settled_by_a_check_back(rocketmq: SyncRocketMQ) -> None:
    listener = Transactions()
    producer = rocketmq.transaction_producer("p", listener)
    rocketmq.lose_next_decision()
    producer.send_message_in_transaction(order())
    assert [one.keys for one in rocketmq.pending()] == [("order-1",)]
    rocketmq.advance(minutes=1)
    assert listener.checks == 1
    assert rocketmq.committed("order-1").body == b"1"
    assert [one.state for one in rocketmq.decided()] == ["committed"]


def test_no_time_passes_between_calls(rocketmq: SyncRocketMQ) -> None:
    before = rocketmq.elapsed_s
    time.sleep(0.05)
    assert rocketmq.elapsed_s == before
    rocketmq.advance(seconds=10)
    assert rocketmq.elapsed_s == pytest.approx(before + 10)


def test_a_message_sent_is_consumed(rocketmq: SyncRocketMQ) -> None:
    consumption = Consumption()
    producer = rocketmq.producer("p")
    producer.create_topic("orders")
    rocketmq.consumer("c", "orders", consumption)
    producer.send(order())
    rocketmq.wait_until(lambda: consumption.got)
    assert consumption.bodies == [b"1"]


def test_what_does_not_come_fails_with_the_story(rocketmq: SyncRocketMQ) -> None:
    rocketmq.transaction_producer("p", Transactions(UNKNOWN)).send_message_in_transaction(order())
    with pytest.raises(
        AssertionError, match=r"timed out after 1 s, waiting for the invoice\n(.*\n)*.*p sends a half message to orders"
    ):
        rocketmq.wait_until(lambda: False, seconds=1, what="the invoice")


def test_a_crash_and_a_restart(rocketmq: SyncRocketMQ) -> None:
    producer = rocketmq.producer("p", send_timeout_ms=100, retry_times_when_send_failed=0)
    producer.send(order())
    rocketmq.crash()
    with pytest.raises(ClientError):
        producer.send(order())
    rocketmq.restart()
    rocketmq.advance(minutes=1)
    producer.send(order("order-2"))
    assert len(rocketmq.messages("orders")) == 2


def test_held_check_backs_arrive_when_they_are_released(rocketmq: SyncRocketMQ) -> None:
    listener = Transactions(UNKNOWN)
    rocketmq.transaction_producer("p", listener).send_message_in_transaction(order())
    with rocketmq.hold_check_backs():
        rocketmq.advance(minutes=1)
        assert listener.checks == 0
    rocketmq.committed("order-1")


def test_a_call_from_a_listener_says_what_is_wrong(rocketmq: SyncRocketMQ) -> None:
    errors: list[BaseException] = []

    async def consume(messages: object, context: object) -> None:
        try:
            rocketmq.advance(seconds=1)
        except RuntimeError as error:
            errors.append(error)

    producer = rocketmq.producer("p")
    producer.create_topic("orders")
    rocketmq.consumer("c", "orders", consume)
    producer.send(order())
    rocketmq.settle()
    assert "the event loop's own thread" in str(errors[0])


def test_a_real_client_on_another_thread_connects(rocketmq: SyncRocketMQ) -> None:
    with EventLoopThread() as loop:
        producer = Producer("p", namesrv_addr=rocketmq.namesrv_addr)
        loop.run(producer.start())
        loop.run(producer.send(order()))
        loop.run(producer.shutdown())
    assert [one.keys for one in rocketmq.messages("orders")] == [("order-1",)]


@pytest.mark.parametrize("key", ["a", "b"])
def test_a_session_shares_one(rocketmq_session: SyncRocketMQ, key: str) -> None:
    rocketmq_session.producer(f"p-{key}").send(order(key))
    assert key in [one.keys[0] for one in rocketmq_session.messages("orders")]


@pytest.mark.rocketmq(seed=3)
def test_a_marker_chooses_the_seed(rocketmq: SyncRocketMQ) -> None:
    assert rocketmq.namesrv_addr == "127.0.0.1:9876"
    assert threading.active_count() > 1


def test_a_real_producer_on_another_thread_is_asked_for_fifteen_minutes_of_the_test(rocketmq: SyncRocketMQ) -> None:
    listener = Transactions(UNKNOWN, UNKNOWN)
    with EventLoopThread() as loop:
        producer = TransactionProducer("p", listener, namesrv_addr=rocketmq.namesrv_addr)
        loop.run(producer.start())
        loop.run(producer.send_message_in_transaction(order()))
        assert loop.run(producer.is_connected())
        rocketmq.advance(minutes=20)
        assert listener.checks == 15
        assert [one.state for one in rocketmq.decided("order-1")] == ["discarded"]
        loop.run(producer.shutdown())


def test_a_synchronous_test_can_call_all_that_an_asynchronous_one_can() -> None:
    missing = {name for name in dir(RocketMQ) if not name.startswith("_") and name not in dir(SyncRocketMQ)}
    assert missing == {"inside", "inspection"}  # each call runs inside; an inspection is read on the event loop
