"""Tests of push consumers with a broker: groups, order, retries, dead letters, broadcasting and pulling."""

import asyncio
import time
from collections import defaultdict
from pathlib import Path

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessageModel, NoRoute, Producer, PullConsumer
from rocketmq_broker.message import Message, MessageExt, MessageQueue
from rocketmq_broker.testing import RocketMQ
from tests.e2e.clients import PATIENT, Inbox, consumer, running

SUCCESS, LATER = ConsumeStatus


async def fill(producer: Producer, topic: str, count: int, queue_count: int = 4) -> list[MessageQueue]:
    """Sends the messages 0 to count - 1 to the queues in turn. Returns the queues."""
    await producer.create_topic(topic, queue_count)
    queues = await producer.queues(topic)
    for number in range(count):
        await producer.send(Message.of(topic, str(number).encode()), queues[number % queue_count])
    return queues


async def dead_letter_queues(reader: PullConsumer) -> list[MessageQueue]:
    """Waits until the group has dead-letter queues, and returns them."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await reader.queues("%DLQ%group")
            except NoRoute:
                await asyncio.sleep(0.1)


def numbers(count: int) -> set[str]:
    return {str(number) for number in range(count)}


async def test_two_members_of_a_group_share_the_messages(rocketmq: RocketMQ) -> None:
    first, second = Inbox(), Inbox()
    members = [consumer(rocketmq.namesrv_addr, "group", "orders", inbox) for inbox in (first, second)]
    async with running(Producer("p", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer:
        await producer.create_topic("orders", 4)
        async with running(members[0]):
            await rocketmq.settle()  # clients of one process differ by the time of their start
            async with running(members[1]):
                await rocketmq.wait_until(
                    lambda: [sum(queue.topic == "orders" for queue in one.queues) for one in members] == [2, 2]
                )
                await fill(producer, "orders", 40)
                await rocketmq.wait_until(lambda: len(first.bodies) + len(second.bodies) >= 40)
    assert len(first.bodies) == len(second.bodies) == 20
    assert {*first.bodies, *second.bodies} == numbers(40)


async def test_each_queue_is_consumed_in_order_while_members_come_and_failures_happen(rocketmq: RocketMQ) -> None:
    seen: defaultdict[int, list[int]] = defaultdict(list)
    at_work: set[int] = set()
    overlaps: list[int] = []

    def in_order(message: MessageExt, context: ConsumeContext) -> ConsumeStatus:
        if message.queue_id in at_work:
            overlaps.append(message.queue_id)
        at_work.add(message.queue_id)
        time.sleep(0.005)
        at_work.discard(message.queue_id)
        context.suspend_current_queue_time_ms = 20
        if message.body.endswith(b"7") and message.reconsume_times < 2:
            return LATER
        seen[message.queue_id].append(int(message.body))
        return SUCCESS

    first, second = (consumer(rocketmq.namesrv_addr, "group", "orders", Inbox(in_order), orderly=True) for _ in range(2))
    async with running(Producer("p", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer, running(first):
        filling = asyncio.create_task(fill(producer, "orders", 120, queue_count=2))
        await rocketmq.wait_until(lambda: sum(map(len, seen.values())) > 20)
        async with running(second):
            await rocketmq.wait_until(lambda: any(queue.topic == "orders" for queue in second.queues))
            await filling
            await rocketmq.wait_until(lambda: sum(map(len, seen.values())) >= 120)
    assert overlaps == []
    for queue_id in (0, 1):
        assert seen[queue_id] == list(range(queue_id, 120, 2))


async def test_a_message_that_keeps_failing_is_redelivered_and_ends_among_the_dead_letters(rocketmq: RocketMQ) -> None:
    def poison(message: MessageExt, context: ConsumeContext) -> ConsumeStatus:
        context.delay_level_when_next_consume = 1
        return LATER if message.body == b"poison" else SUCCESS

    inbox = Inbox(poison)
    async with running(Producer("p", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer:
        await producer.create_topic("orders", 1)
        async with running(consumer(rocketmq.namesrv_addr, "group", "orders", inbox, max_reconsume_times=2)):
            await producer.send(Message.of("orders", b"poison"))
            await producer.send(Message.of("orders", b"good"))
            await rocketmq.wait_until(lambda: len(inbox.bodies) == 4)
            async with running(PullConsumer("operator", namesrv_addr=rocketmq.namesrv_addr)) as pulling:
                pulling.assign(await dead_letter_queues(pulling))
                (dead,) = await pulling.poll(60_000)
    attempts = [(message.topic, message.reconsume_times) for message in inbox.messages if message.body == b"poison"]
    assert attempts == [("orders", 0), ("orders", 1), ("orders", 2)]
    assert dead.body == b"poison"
    assert dead.properties["RETRY_TOPIC"] == "orders"


async def test_with_broadcasting_everyone_gets_everything_once_even_after_a_restart(rocketmq: RocketMQ, tmp_path: Path) -> None:
    def member(name: str, inbox: Inbox) -> object:
        return consumer(
            rocketmq.namesrv_addr,
            "group",
            "orders",
            inbox,
            message_model=MessageModel.BROADCASTING,
            instance_name=name,
            local_offset_directory=tmp_path,
        )

    first, second, restarted = Inbox(), Inbox(), Inbox()
    async with running(Producer("p", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer:
        await fill(producer, "orders", 20)
        async with running(member("first", first), member("second", second)):  # type: ignore[type-var]
            await rocketmq.wait_until(lambda: len(first.bodies) == len(second.bodies) == 20)
        async with running(member("first", restarted)):  # type: ignore[type-var]
            await producer.send(Message.of("orders", b"new"))
            await rocketmq.wait_until(lambda: "new" in restarted.bodies)
    assert set(first.bodies) == set(second.bodies) == numbers(20)
    assert restarted.bodies == ["new"]
