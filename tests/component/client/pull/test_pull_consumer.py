"""Tests of the pull consumer, with a broker whose time the test controls."""

from collections.abc import AsyncIterator

import pytest

from rocketmq_broker.client import (
    Message,
    MessageQueue,
    MessageSelector,
    NoRoute,
    Producer,
    PullConsumer,
)
from rocketmq_broker.testing import RocketMQ


@pytest.fixture
async def producer(rocketmq: RocketMQ) -> Producer:
    producer = await rocketmq.producer("shops")
    await producer.create_topic("orders", 2)
    return producer


@pytest.fixture
async def consumer(rocketmq: RocketMQ, producer: Producer) -> AsyncIterator[PullConsumer]:
    async with PullConsumer("auditors", namesrv_addr=rocketmq.namesrv_addr) as consumer:
        yield consumer


async def send(producer: Producer, *bodies: str, queue: MessageQueue | None = None, tags: str | None = None) -> None:
    for body in bodies:
        await producer.send(Message.of("orders", body, tags=tags), queue=queue)


async def polled(consumer: PullConsumer, count: int) -> list[str]:
    """Returns the bodies of the next `count` messages."""
    found: list[str] = []
    while len(found) < count:
        messages = await consumer.poll()
        assert messages, f"only {found} came"
        found += [message.text for message in messages]
    return found


async def test_it_reads_the_queues_that_it_is_assigned_each_in_order(producer: Producer, consumer: PullConsumer) -> None:
    first, second = await consumer.queues("orders")
    await send(producer, "a1", "a2", "a3", queue=first)
    await send(producer, "b1", "b2", queue=second)
    consumer.assign([first, second])
    found = await polled(consumer, 5)
    assert [body for body in found if body.startswith("a")] == ["a1", "a2", "a3"]
    assert [body for body in found if body.startswith("b")] == ["b1", "b2"]


async def test_a_queue_that_is_no_longer_assigned_is_read_no_more(producer: Producer, consumer: PullConsumer) -> None:
    first, second = await consumer.queues("orders")
    consumer.assign([first, second])
    consumer.assign([second])
    await send(producer, "a1", queue=first)
    await send(producer, "b1", queue=second)
    assert await polled(consumer, 1) == ["b1"]
    assert await consumer.poll(timeout_ms=1000) == []


async def test_nothing_comes_of_an_empty_queue_when_the_time_is_over(rocketmq: RocketMQ, consumer: PullConsumer) -> None:
    consumer.assign(await consumer.queues("orders"))
    began_s = rocketmq.time.elapsed_s
    assert await consumer.poll(timeout_ms=7000) == []
    assert rocketmq.time.elapsed_s - began_s == pytest.approx(7, abs=0.5)


async def test_it_goes_on_where_it_is_told_to(producer: Producer, consumer: PullConsumer) -> None:
    (first, _) = await consumer.queues("orders")
    await send(producer, "a1", "a2", "a3", queue=first)
    consumer.assign([first])
    assert await polled(consumer, 3) == ["a1", "a2", "a3"]
    consumer.seek(first, 1)
    assert await polled(consumer, 2) == ["a2", "a3"]


async def test_what_was_given_out_and_committed_does_not_come_again_and_the_rest_does(
    rocketmq: RocketMQ, producer: Producer, consumer: PullConsumer
) -> None:
    (first, _) = await consumer.queues("orders")
    await send(producer, "a1", "a2", "a3", queue=first)
    assert await consumer.committed(first) == 0  # as RocketMQ says of a young queue
    consumer.assign([first])
    assert [message.text for message in await consumer.poll(max_messages=2)] == ["a1", "a2"]
    await consumer.commit()
    assert await consumer.committed(first) == 2
    assert await polled(consumer, 1) == ["a3"]
    await consumer.shutdown()
    async with PullConsumer("auditors", namesrv_addr=rocketmq.namesrv_addr) as another:
        another.assign([first])
        assert await polled(another, 1) == ["a3"]


async def test_only_messages_with_a_wanted_tag_come(producer: Producer, consumer: PullConsumer) -> None:
    (first, _) = await consumer.queues("orders")
    for tag in ("BB", "books", "Aa", "shoes"):  # Aa and BB have the same hash code
        await send(producer, tag, queue=first, tags=tag)
    consumer.assign([first], MessageSelector.by_tag("Aa || shoes"))
    assert await polled(consumer, 2) == ["Aa", "shoes"]


async def test_a_single_pull_remembers_nothing(producer: Producer, consumer: PullConsumer) -> None:
    (first, _) = await consumer.queues("orders")
    await send(producer, "a1", "a2", "a3", queue=first)
    pulled = await consumer.pull(first, 1, max_messages=1)
    assert ([message.text for message in pulled.messages], pulled.next_offset) == (["a2"], 2)
    assert [message.text for message in (await consumer.pull(first, 1)).messages] == ["a2", "a3"]
    at_the_end = await consumer.pull(first, 3)
    assert (at_the_end.messages, at_the_end.next_offset, at_the_end.max_offset) == ([], 3, 3)


async def test_a_pull_waits_for_a_message_as_long_as_it_is_told(rocketmq: RocketMQ, consumer: PullConsumer) -> None:
    (first, _) = await consumer.queues("orders")
    began_s = rocketmq.time.elapsed_s
    assert (await consumer.pull(first, 0, suspend_ms=5000)).messages == []
    assert rocketmq.time.elapsed_s - began_s == pytest.approx(5, abs=1.5)


async def test_a_queue_begins_and_ends_where_its_broker_says(producer: Producer, consumer: PullConsumer) -> None:
    (first, second) = await consumer.queues("orders")
    await send(producer, "a1", "a2", queue=first)
    assert (await consumer.min_offset(first), await consumer.max_offset(first)) == (0, 2)
    assert (await consumer.min_offset(second), await consumer.max_offset(second)) == (0, 0)


async def test_a_topic_that_no_broker_has_is_named(consumer: PullConsumer) -> None:
    with pytest.raises(NoRoute, match="no broker has a readable queue of topic unknown"):
        await consumer.queues("unknown")
    with pytest.raises(NoRoute, match="no broker has topic unknown"):
        await consumer.max_offset(MessageQueue("unknown", "broker-a", 0))
