"""Tests that `rocketmq.as_apache()` simulates Apache's broker correctly, by comparison with a real one."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from rocketmq_broker.client import (
    LocalTransactionState,
    Message,
    MessageExt,
    MessageQueue,
    NoRoute,
    PullConsumer,
    TransactionProducer,
)
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from tests.foreign.apache.cluster import apache_rocketmq

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(900)]
IMMUNITY = props.CHECK_IMMUNITY_TIME_IN_SECONDS


@pytest.fixture(scope="module")
def namesrv_addr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"CHECK_INTERVAL_MS": "2000", "CHECK_MAX": "5"}
    with apache_rocketmq(tmp_path_factory.mktemp("apache"), settings=settings) as address:
        yield address


class Slow:
    """A transaction listener with a slow local transaction. It returns COMMIT at check-backs and counts them."""

    def __init__(self, seconds: float, executed: LocalTransactionState = LocalTransactionState.COMMIT_MESSAGE) -> None:
        self.seconds, self.executed, self.checked = seconds, executed, LocalTransactionState.COMMIT_MESSAGE
        self.checks = 0

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        await asyncio.sleep(self.seconds)
        return self.executed

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checks += 1
        return self.checked


async def messages_of(namesrv_addr: str, topic: str, *, least: int, within_s: float = 120) -> list[MessageExt]:
    """Returns the messages of the topic when there are at least `least`, or when the time has expired."""
    found: list[MessageExt] = []
    async with PullConsumer("auditors", namesrv_addr=namesrv_addr) as consumer:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                consumer.assign(await queues_of(consumer, topic))
                while len(found) < least:
                    found += await consumer.poll(timeout_ms=1000)
    return found


async def queues_of(consumer: PullConsumer, topic: str) -> list[MessageQueue]:
    """Waits until the broker has created the topic, and returns its queues."""
    while True:
        try:
            return await consumer.queues(topic)
        except NoRoute:
            await asyncio.sleep(0.5)


async def test_an_immune_message_uses_its_checks_up_and_nobody_is_asked(namesrv_addr: str) -> None:
    listener = Slow(0, LocalTransactionState.UNKNOWN)
    async with TransactionProducer("patient", listener, namesrv_addr=namesrv_addr, send_timeout_ms=30_000) as producer:
        await producer.create_topic("patience", 1)
        message = Message.of("patience", b"1", user_properties={IMMUNITY: "3600"})
        sent = await producer.send_message_in_transaction(message)
        (discarded,) = await messages_of(namesrv_addr, topics.CHECK_MAX_TIME_TOPIC, least=1)
        assert discarded.message_id == sent.message_id
        assert listener.checks == 0


async def test_a_commit_after_a_look_at_an_immune_message_delivers_twice(namesrv_addr: str) -> None:
    listener = Slow(3)
    async with TransactionProducer("slow", listener, namesrv_addr=namesrv_addr, send_timeout_ms=30_000) as producer:
        await producer.create_topic("slowness", 1)
        message = Message.of("slowness", b"1", user_properties={IMMUNITY: "5"})
        await producer.send_message_in_transaction(message)
        found = await messages_of(namesrv_addr, "slowness", least=2)
    assert len(found) >= 2
    assert len({one.message_id for one in found}) == 1
    assert listener.checks >= 1


async def test_a_search_by_time_finds_the_nearest_message_and_past_the_end_the_last_one(namesrv_addr: str) -> None:
    producer = TransactionProducer("sender", Slow(0), namesrv_addr=namesrv_addr, send_timeout_ms=30_000)
    async with producer, PullConsumer("searchers", namesrv_addr=namesrv_addr) as consumer:
        await producer.create_topic("times", 1)
        await producer.send(Message.of("times", b"first"))
        await asyncio.sleep(3)
        sent = await producer.send(Message.of("times", b"second"))
        first, second = await messages_of(namesrv_addr, "times", least=2)
        between_ms = (first.store_timestamp + second.store_timestamp) // 2
        for timestamp_ms, offset in (
            (first.store_timestamp - 60_000, 0),
            (between_ms - 500, 0),
            (between_ms + 500, 1),
            (second.store_timestamp + 60_000, 1),
        ):
            assert await consumer.search_offset(sent.queue, timestamp_ms) == offset


async def test_a_transaction_is_decided_from_outside_by_its_id_after_check_backs(namesrv_addr: str) -> None:
    listener = Slow(0, LocalTransactionState.UNKNOWN)
    listener.checked = LocalTransactionState.UNKNOWN
    async with TransactionProducer("coordinated", listener, namesrv_addr=namesrv_addr, send_timeout_ms=30_000) as producer:
        await producer.create_topic("coordinated", 1)
        committed = await producer.send_message_in_transaction(Message.of("coordinated", b"1", user_properties={IMMUNITY: "1"}))
        rolled_back = await producer.send_message_in_transaction(Message.of("coordinated", b"2", user_properties={IMMUNITY: "1"}))
        async with asyncio.timeout(120):
            while not listener.checks:  # noqa: ASYNC110 (the broker tells the listener, and nobody us)
                await asyncio.sleep(0.1)
        await producer.end_transaction(str(rolled_back.transaction_id), LocalTransactionState.ROLLBACK_MESSAGE)
        await producer.end_transaction(str(committed.transaction_id), LocalTransactionState.COMMIT_MESSAGE)
        assert [message.body for message in await messages_of(namesrv_addr, "coordinated", least=1)] == [b"1"]
