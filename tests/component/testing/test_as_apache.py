"""Tests of the behavior of Apache's broker that the fixture simulates only on request."""

import asyncio
import threading
from collections.abc import Mapping

import pytest

from rocketmq_broker.client import LocalTransactionState, TransactionProducer, TransactionSendResult
from rocketmq_broker.client.transaction.transaction_decision import end_after_local_transaction
from rocketmq_broker.message import Message, topics
from rocketmq_broker.testing import RocketMQ
from tests.unit.testing.listeners import COMMIT, ROLLBACK, UNKNOWN, Consumption, Transactions, order


class Late(Transactions):
    """A transaction listener with a slow local transaction. Checks return UNKNOWN until the local transaction has ended."""

    def __init__(self) -> None:
        super().__init__(checked=UNKNOWN)
        self.may_end = threading.Event()

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        self.may_end.wait()
        self.checked = COMMIT
        return COMMIT


async def deliveries_after_a_late_commit(rocketmq: RocketMQ) -> list[bytes]:
    listener, consumption = Late(), Consumption()
    producer = await rocketmq.transaction_producer("p", listener)
    await producer.create_topic("orders")
    await rocketmq.consumer("c", "orders", consumption)
    sending = asyncio.create_task(producer.send_message_in_transaction(order()))
    await rocketmq.advance(seconds=10)
    assert listener.checks == 1
    listener.may_end.set()
    await sending
    await rocketmq.advance(minutes=5)
    assert len({message.message_id for message in consumption.got}) == 1
    return consumption.bodies


async def test_a_commit_after_a_check_back_delivers_once(rocketmq: RocketMQ) -> None:
    assert await deliveries_after_a_late_commit(rocketmq) == [b"1"]


async def test_a_commit_after_a_check_back_delivers_twice_as_with_apache(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache()
    assert await deliveries_after_a_late_commit(rocketmq) == [b"1", b"1"]
    assert "delivered a second time" in rocketmq.timeline("order-1")


async def test_a_transaction_whose_producer_is_away_waits(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("p", Transactions(UNKNOWN))
    await producer.send_message_in_transaction(order())
    await producer.shutdown()
    await rocketmq.advance(hours=1)
    assert [one.checks for one in await rocketmq.pending()] == [0]


async def test_a_transaction_whose_producer_is_away_is_discarded_unasked_as_with_apache(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache()
    listener = Transactions(UNKNOWN)
    producer = await rocketmq.transaction_producer("p", listener)
    await producer.send_message_in_transaction(order())
    await producer.shutdown()
    await rocketmq.advance(minutes=17)
    assert listener.checks == 0
    assert [one.keys for one in await rocketmq.messages(topics.CHECK_MAX_TIME_TOPIC)] == [("order-1",)]


async def test_it_lasts_over_a_crash(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache()
    producer = await rocketmq.transaction_producer("p", Transactions(UNKNOWN))
    await producer.send_message_in_transaction(order())
    await producer.shutdown()
    await rocketmq.crash()
    await rocketmq.restart()
    await rocketmq.advance(minutes=20)
    assert [one.state for one in await rocketmq.decided()] == ["discarded"]


async def send_decision(producer: TransactionProducer, sent: TransactionSendResult, state: LocalTransactionState) -> None:
    """Sends a decision for a transaction to the broker, even if an earlier one was sent."""
    running = producer._lifecycle.running()
    header = end_after_local_transaction(producer.group, sent, state)
    await running.requests.end_transaction(sent.queue.broker_name, header)


@pytest.mark.parametrize("first", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("is_like_apache", [False, True])
async def test_a_commit_after_another_decision_delivers_only_as_with_apache(
    rocketmq: RocketMQ, first: LocalTransactionState, is_like_apache: bool
) -> None:
    if is_like_apache:
        rocketmq.as_apache()
    producer = await rocketmq.transaction_producer("p", Transactions(first))
    sent = await producer.send_message_in_transaction(order())
    await rocketmq.settle()
    await send_decision(producer, sent, COMMIT)
    delivered = [message.keys for message in await rocketmq.messages("orders")]
    assert len(delivered) == (first is COMMIT) + is_like_apache
    assert set(delivered) <= {("order-1",)}


class TestAfterTheLastCheck:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckMax": 1}

    async def test_a_commit_after_the_discard_delivers_as_with_apache(self, rocketmq: RocketMQ) -> None:
        rocketmq.as_apache()
        producer = await rocketmq.transaction_producer("p", Transactions(UNKNOWN, UNKNOWN))
        sent = await producer.send_message_in_transaction(order())
        await rocketmq.advance(minutes=5)
        assert [one.state for one in await rocketmq.decided()] == ["discarded"]
        await send_decision(producer, sent, COMMIT)
        (message,) = await rocketmq.messages("orders")
        assert (message.message_id, message.body) == (sent.message_id, b"1")


@pytest.mark.parametrize("is_like_apache", [False, True])
async def test_the_sender_is_asked_first_or_as_with_apache_each_member_in_turn(rocketmq: RocketMQ, is_like_apache: bool) -> None:
    sender, other = Transactions(UNKNOWN, UNKNOWN), Transactions(UNKNOWN, UNKNOWN)
    producer = await rocketmq.transaction_producer("p", sender)
    if is_like_apache:
        rocketmq.as_apache()
    await rocketmq.transaction_producer("p", other)
    await producer.send_message_in_transaction(order())
    await rocketmq.advance(minutes=5)
    assert sender.checks + other.checks == 5
    assert (other.checks > 0) is is_like_apache
    assert sender.checks > 0
