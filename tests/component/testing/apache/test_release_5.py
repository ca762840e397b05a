"""Tests of the differences between RocketMQ 5 and 4.9.7: batches of op messages, late decisions, and searches by time."""

from collections.abc import AsyncIterator

import pytest

from rocketmq_broker.client import Message, MessageQueue, PullConsumer
from rocketmq_broker.testing import RocketMQ, SyncRocketMQ
from tests.component.testing.apache.test_immunity import Slow, immune_order
from tests.component.testing.apache.test_second_copies import Deciding
from tests.unit.testing.listeners import ROLLBACK, Transactions, send_in_transaction


async def test_a_release_that_is_none_is_named(rocketmq: RocketMQ) -> None:
    with pytest.raises(ValueError, match=r"unknown release 6: must be 4 \(4\.9\.7\) or 5 \(5\.3\.3\)"):
        rocketmq.as_apache(release=6)


def test_a_synchronous_test_asks_for_a_release_too(rocketmq: SyncRocketMQ) -> None:
    rocketmq.as_apache(release=5)
    with pytest.raises(ValueError, match="unknown release 0"):
        rocketmq.as_apache(release=0)


@pytest.mark.parametrize(("release", "deliveries"), [(4, 1), (5, 2)])
async def test_a_commit_less_than_three_seconds_before_a_check_does_not_stop_it(
    rocketmq: RocketMQ, release: int, deliveries: int
) -> None:
    rocketmq.as_apache(release)
    listener = Slow(4)  # the check is due at 6 s
    await send_in_transaction(rocketmq, listener)
    await rocketmq.advance(minutes=2)
    assert (listener.checks, len(await rocketmq.messages("orders"))) == (deliveries - 1, deliveries)


async def test_a_commit_three_seconds_before_a_check_stops_it(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache(release=5)
    listener = Slow(2)
    await send_in_transaction(rocketmq, listener)
    await rocketmq.advance(minutes=2)
    assert (listener.checks, len(await rocketmq.messages("orders"))) == (0, 1)


@pytest.mark.parametrize(("release", "seconds", "deliveries"), [(4, 1, 1), (5, 1, 2), (5, 4, 1)])
async def test_a_crash_within_three_seconds_of_a_commit_has_it_checked_again(
    rocketmq: RocketMQ, release: int, seconds: int, deliveries: int
) -> None:
    rocketmq.as_apache(release)
    listener = Transactions()
    await send_in_transaction(rocketmq, listener)
    await rocketmq.advance(seconds=seconds)
    await rocketmq.crash()
    await rocketmq.restart()
    await rocketmq.advance(minutes=3)
    assert (listener.checks, len(await rocketmq.messages("orders"))) == (deliveries - 1, deliveries)


async def test_a_restart_in_good_order_forgets_no_decision(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache(release=5)
    listener = Transactions()
    await send_in_transaction(rocketmq, listener)
    await rocketmq.restart()
    await rocketmq.advance(minutes=3)
    assert (listener.checks, len(await rocketmq.messages("orders"))) == (0, 1)


@pytest.mark.parametrize(("release", "state"), [(4, "rolled back"), (5, "committed")])
async def test_a_decision_after_the_immunity_is_left_to_the_next_check(rocketmq: RocketMQ, release: int, state: str) -> None:
    rocketmq.as_apache(release)
    listener = Deciding(seconds=8)  # checked at 5 s, when it does not know, and at 65 s, when it says COMMIT
    listener.executed = ROLLBACK
    await send_in_transaction(rocketmq, listener, immune_order(5))
    await rocketmq.advance(minutes=2)
    assert [one.state for one in await rocketmq.decided()] == [state]
    assert ("refused after the immunity has ended" in rocketmq.timeline("order-1")) is (release == 5)


class TestSearchesByTime:
    @pytest.fixture
    async def queue(self, rocketmq: RocketMQ) -> MessageQueue:
        """Returns a queue with two messages, which were sent at 0 s and at 10 s."""
        producer = await rocketmq.producer("p")
        await producer.create_topic("orders", 1)
        await producer.send(Message.of("orders", b"first"))
        await rocketmq.advance(seconds=10)
        sent = await producer.send(Message.of("orders", b"second"))
        await rocketmq.advance(seconds=10)
        return sent.queue

    @pytest.fixture
    async def consumer(self, rocketmq: RocketMQ) -> AsyncIterator[PullConsumer]:
        async with PullConsumer("auditors", namesrv_addr=rocketmq.namesrv_addr) as consumer:
            yield consumer

    @pytest.mark.parametrize(
        ("release", "seconds", "offset"),
        [(4, 1, 0), (5, 1, 1), (4, 9, 1), (5, 9, 1), (4, 15, 1), (5, 15, 2), (4, -5, 0), (5, -5, 0)],
    )
    async def test_find_the_nearest_message_or_with_5_the_next_one(
        self, rocketmq: RocketMQ, queue: MessageQueue, consumer: PullConsumer, release: int, seconds: int, offset: int
    ) -> None:
        rocketmq.as_apache(release)
        (first, _) = await rocketmq.messages("orders")
        assert await consumer.search_offset(queue, first.store_timestamp + 1000 * seconds) == offset

    async def test_find_the_beginning_of_a_queue_that_is_empty(self, rocketmq: RocketMQ, consumer: PullConsumer) -> None:
        rocketmq.as_apache(release=5)
        producer = await rocketmq.producer("p")
        await producer.create_topic("orders", 1)
        (queue,) = await consumer.queues("orders")
        assert await consumer.search_offset(queue, 0) == 0
