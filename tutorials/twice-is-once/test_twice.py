"""Tests redelivery to a consumer with a unique key and to a consumer without one."""

import asyncio
import sqlite3
from itertools import pairwise

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Message, MessageExt
from rocketmq_broker.testing import RocketMQ


class Ledger:
    """The consumer's two ledgers: one with a unique key and one without."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE TABLE with_key (order_id TEXT PRIMARY KEY)")
        self.database.execute("CREATE TABLE without_key (order_id TEXT)")

    def credit(self, order_id: str) -> None:
        self.database.execute("INSERT INTO with_key VALUES (?) ON CONFLICT DO NOTHING", (order_id,))
        self.database.execute("INSERT INTO without_key VALUES (?)", (order_id,))

    def count(self, table: str) -> int:
        return int(self.database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


async def test_a_consumer_that_dies_before_it_acknowledges_gets_the_message_again(rocketmq: RocketMQ) -> None:
    ledger = Ledger()

    async def dies(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        ledger.credit(messages[0].keys[0])
        await asyncio.Event().wait()  # the process hangs here until it is killed
        return ConsumeStatus.CONSUME_SUCCESS

    async def lives(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        ledger.credit(messages[0].keys[0])
        return ConsumeStatus.CONSUME_SUCCESS

    producer = await rocketmq.producer("shop")
    await producer.create_topic("orders")
    dying = await rocketmq.consumer("credits", "orders", dies)
    await producer.send(Message.of("orders", "a book", keys=["order-1"]))
    await rocketmq.settle()
    await dying.shutdown()
    await rocketmq.consumer("credits", "orders", lives)
    await rocketmq.advance(minutes=1)
    assert (ledger.count("with_key"), ledger.count("without_key")) == (1, 2)


async def test_a_message_that_fails_waits_longer_each_time(rocketmq: RocketMQ) -> None:
    times: list[float] = []

    async def fails(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        times.append(rocketmq.time.elapsed_s)
        return ConsumeStatus.RECONSUME_LATER

    producer = await rocketmq.producer("shop")
    await producer.create_topic("orders")
    await rocketmq.consumer("credits", "orders", fails)
    await producer.send(Message.of("orders", "a book"))
    await rocketmq.advance(minutes=5)
    assert [round(after - before) for before, after in pairwise(times)] == [10, 30, 60, 120]


async def test_after_its_last_redelivery_the_message_is_a_dead_letter(rocketmq: RocketMQ) -> None:
    """A message becomes a dead letter after its last redelivery (the exercise's solution)."""
    attempts: list[int] = []

    async def fails(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        attempts.append(messages[0].reconsume_times)
        return ConsumeStatus.RECONSUME_LATER

    producer = await rocketmq.producer("shop")
    await producer.create_topic("orders")
    await rocketmq.consumer("credits", "orders", fails, max_reconsume_times=3)
    await producer.send(Message.of("orders", "a book", keys=["order-1"]))
    await rocketmq.advance(minutes=10)
    assert attempts == [0, 1, 2, 3]
    assert [message.keys for message in await rocketmq.messages("%DLQ%credits")] == [("order-1",)]
