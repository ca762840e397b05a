"""Tests of the copy of a half message that Apache's broker checks although the transaction is decided."""

import asyncio
from collections.abc import Mapping

import pytest

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import RocketMQ
from tests.component.testing.apache.test_immunity import Slow
from tests.unit.testing.listeners import COMMIT, ROLLBACK, UNKNOWN, Consumption, order, send_in_transaction


class Deciding(Slow):
    """A transaction listener that returns UNKNOWN while its local transaction runs, and then `later`."""

    def __init__(self, later: LocalTransactionState = COMMIT, seconds: float = 10) -> None:
        super().__init__(seconds)
        self.later = later
        self.bodies: list[bytes] = []
        self.check_counts: list[int] = []

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checks += 1
        self.bodies.append(message.body)
        self.check_counts.append(message.transaction_check_times)
        return UNKNOWN if self.checks == 1 else self.later


async def deliveries(rocketmq: RocketMQ, listener: Deciding, message: Message | None = None) -> list[MessageExt]:
    """Returns the messages that consumers have received five minutes after a COMMIT that arrived between two checks."""
    rocketmq.as_apache()
    await send_in_transaction(rocketmq, listener, message or order())
    await rocketmq.advance(minutes=5)
    return await rocketmq.messages("orders")


async def test_it_is_checked_as_the_next_check_of_its_transaction(rocketmq: RocketMQ) -> None:
    listener = Deciding()
    assert len(await deliveries(rocketmq, listener)) == 2
    assert listener.check_counts == [1, 2]
    assert listener.bodies == [b"1", b"1"]


async def test_a_rollback_of_it_delivers_nothing_more(rocketmq: RocketMQ) -> None:
    listener = Deciding(ROLLBACK)
    assert len(await deliveries(rocketmq, listener)) == 1
    assert listener.checks == 2


async def test_a_large_body_comes_whole_both_times(rocketmq: RocketMQ) -> None:
    body = b"a book, and " * 2000  # the client compresses it
    listener = Deciding()
    found = await deliveries(rocketmq, listener, Message.of("orders", body, keys=["order-1"]))
    assert [message.body for message in found] == [body, body]
    assert listener.bodies == [body, body]


async def test_consumers_get_it_twice_with_one_message_id_and_all_its_properties(rocketmq: RocketMQ) -> None:
    consumption = Consumption()
    topics = await rocketmq.producer("topics")
    await topics.create_topic("orders")
    await rocketmq.consumer("credits", "orders", consumption)
    await deliveries(rocketmq, Deciding(), order(user_properties={"color": "red"}, tags="paid"))
    assert len(consumption.got) == 2
    assert len({message.message_id for message in consumption.got}) == 1
    assert [(message.tags, message.properties["color"]) for message in consumption.got] == [("paid", "red")] * 2


async def test_a_producer_that_connected_again_is_asked_about_it(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache()
    listener = Deciding()
    await send_in_transaction(rocketmq, listener)
    rocketmq.cut_connections()
    await rocketmq.advance(minutes=5)
    assert listener.checks == 2
    assert len(await rocketmq.messages("orders")) == 2


async def test_its_checks_are_held_like_any_other(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache()
    listener = Deciding()
    await send_in_transaction(rocketmq, listener)
    with rocketmq.hold_check_backs():
        await rocketmq.advance(minutes=2)
        assert listener.checks == 1
    await rocketmq.settle()
    assert listener.checks > 1


class TestAfterTwoChecks:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckMax": 2}

    async def test_it_is_discarded_if_nobody_knows(self, rocketmq: RocketMQ) -> None:
        listener = Deciding(UNKNOWN)
        assert len(await deliveries(rocketmq, listener)) == 1
        assert listener.checks == 2
        assert "the second copy of the half message is discarded" in rocketmq.timeline("order-1")


async def test_an_answer_under_way_settles_it_so_that_nobody_is_asked_again(rocketmq: RocketMQ) -> None:
    class Answering(Slow):
        """A transaction listener whose check-back takes longer than its local transaction."""

        async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:  # type: ignore[override]
            self.checks += 1
            await asyncio.sleep(8)
            return COMMIT

    rocketmq.as_apache()
    listener = Answering(10)
    producer = await rocketmq.transaction_producer("p", listener)
    await producer.send_message_in_transaction(order())  # checked at 6 s, COMMIT at 10 s, the answer at 14 s
    await rocketmq.advance(minutes=5)
    assert listener.checks == 1
    assert len(await rocketmq.messages("orders")) == 2
