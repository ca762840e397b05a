"""Tests of the fixture `rocketmq` in asynchronous tests."""

import asyncio
import time

import pytest

from rocketmq_broker.client import LocalTransactionState, TransactionProducer
from rocketmq_broker.message import Message, MessageExt, topics
from rocketmq_broker.testing.rocketmq import RocketMQ
from tests.unit.testing.listeners import UNKNOWN, Consumption, Transactions, send_in_transaction


async def test_a_message_sent_is_consumed_and_no_time_passes(rocketmq: RocketMQ) -> None:
    consumption = Consumption()
    producer = await rocketmq.producer("p")
    await producer.create_topic("orders")

    await rocketmq.consumer("c", "orders", consumption)
    await producer.send(Message(topic="orders", body=b"1"))
    await rocketmq.settle()
    assert consumption.bodies == [b"1"]


async def test_a_lost_commit_is_settled_by_a_check_back(rocketmq: RocketMQ) -> None:
    listener = Transactions()
    producer = await rocketmq.transaction_producer("p", listener)
    rocketmq.lose_next_decision()
    await producer.send_message_in_transaction(Message.of("orders", b"1", keys=["order-1"]))
    assert [one.keys for one in await rocketmq.pending()] == [("order-1",)]
    await rocketmq.advance(seconds=5)
    assert listener.checks == 0
    await rocketmq.advance(seconds=60)
    assert listener.checks == 1
    assert (await rocketmq.committed("order-1")).body == b"1"


async def test_clients_that_the_test_makes_live_in_the_same_world(rocketmq: RocketMQ) -> None:
    producer = TransactionProducer("p", Transactions(), namesrv_addr=rocketmq.namesrv_addr)
    await producer.start()
    sent = await producer.send_message_in_transaction(Message(topic="orders", body=b"1"))
    now_ms = rocketmq.time.wall_ns() // 1_000_000
    assert (await rocketmq.committed(sent.message_id)).born_timestamp == now_ms
    await producer.shutdown()


async def test_fifteen_checks_and_the_message_is_discarded(rocketmq: RocketMQ) -> None:
    listener = Transactions(UNKNOWN, UNKNOWN)
    sent = await send_in_transaction(rocketmq, listener, Message(topic="orders", body=b"1"))
    await rocketmq.advance(minutes=14, seconds=30)
    assert (listener.checks, len(await rocketmq.pending())) == (15, 1)
    await rocketmq.advance(minutes=2)
    assert [one.state for one in await rocketmq.decided(sent.message_id)] == ["discarded"]
    assert [one.message_id for one in await rocketmq.messages(topics.CHECK_MAX_TIME_TOPIC)] == [sent.message_id]


async def test_sleeping_takes_no_time(rocketmq: RocketMQ) -> None:
    before = rocketmq.time.elapsed_s
    await asyncio.sleep(1000)
    assert rocketmq.time.elapsed_s - before == pytest.approx(1000)


async def test_a_question_that_is_not_awaited_says_so(rocketmq: RocketMQ) -> None:
    with pytest.raises(TypeError, match=r"await rocketmq\.pending\(\)"):
        assert not rocketmq.pending()


async def test_what_does_not_come_fails_with_the_story(rocketmq: RocketMQ) -> None:
    await send_in_transaction(rocketmq, Transactions(UNKNOWN, UNKNOWN), Message.of("orders", b"1", keys=["order-1"]))
    with pytest.raises(AssertionError) as failure:
        await rocketmq.wait_until(lambda: False, seconds=10, what="the invoice")
    story = str(failure.value)
    assert story.startswith("timed out after 10 s, waiting for the invoice")
    for event in (
        "p sends a half message to orders",
        "p: UNKNOWN, no decision",
        "check-back",
        "response of p to a check-back: UNKNOWN",
    ):
        assert event in story
    with pytest.raises(AssertionError, match="'order-1' is pending, not committed"):
        await rocketmq.committed("order-1")


async def test_a_listener_that_raises_says_so_in_the_story_and_in_the_brokers_record(rocketmq: RocketMQ) -> None:
    class Failing(Transactions):
        def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
            raise ValueError("no total")

        def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            raise ValueError("no total")

    sent = await send_in_transaction(rocketmq, Failing(), Message.of("orders", b"1", keys=["order-1"]))
    await rocketmq.advance(seconds=10)
    story = rocketmq.story()
    why = "UNKNOWN, no decision; the listener raised ValueError: no total"
    assert f"  p: {why}" in story
    assert f"the response of p to a check-back: {why}" in story
    assert sent.local_transaction_state is UNKNOWN


async def test_a_thread_that_works_is_waited_for(rocketmq: RocketMQ) -> None:
    before = rocketmq.time.elapsed_s
    await asyncio.to_thread(time.sleep, 0.05)
    assert rocketmq.time.elapsed_s == before
