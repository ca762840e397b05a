"""Consumers by our client on our broker: groups, order, retries, dead letters, broadcasting, pulling."""

import asyncio
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessageModel, NoRoute, Producer, PullConsumer
from rocketmq_broker.message import Message, MessageExt, MessageQueue
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers import QueryConsumerOffsetRequestHeader, QueryConsumerOffsetResponseHeader
from rocketmq_broker.remoting.client import RemotingClient
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
SUCCESS, LATER = ConsumeStatus


async def fill(producer: Producer, topic: str, count: int, queue_count: int = 4) -> list[MessageQueue]:
    """Messages 0 to count - 1, one queue after the other."""
    await producer.create_topic(topic, queue_count)
    queues = await producer.queues(topic)
    for number in range(count):
        await producer.send(Message.of(topic, str(number).encode()), queues[number % queue_count])
    return queues


async def until_committed(address: str, offset: int) -> None:
    """How far the group has come in the first queue; asked without a client, which would be a member and get queues."""
    header = QueryConsumerOffsetRequestHeader(consumer_group="group", topic="orders", queue_id=0)
    client = RemotingClient()
    async with asyncio.timeout(60):
        while True:
            answer = await client.invoke(address, RequestCode.QUERY_CONSUMER_OFFSET, header, timeout_ms=30_000)
            if answer.code == ResponseCode.SUCCESS and answer.decode_header(QueryConsumerOffsetResponseHeader).offset == offset:
                break
            await asyncio.sleep(0.1)
    await client.close()


async def dead_letter_queues(reader: PullConsumer) -> list[MessageQueue]:
    """Those of the group, once there are any."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await reader.queues("%DLQ%group")
            except NoRoute:
                await asyncio.sleep(0.1)


def numbers(count: int) -> set[str]:
    return {str(number) for number in range(count)}


async def test_two_members_of_a_group_share_the_messages(broker: BrokerProcess) -> None:
    first, second = Inbox(), Inbox()
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        members = [consumer(broker.namesrv_addr, "group", "orders", inbox) for inbox in (first, second)]
        await producer.create_topic("orders", 4)
        async with running(*members):
            await until(lambda: [len([q for q in member.queues if q.topic == "orders"]) for member in members] == [2, 2])
            await fill(producer, "orders", 40)
            await until(lambda: len(first.bodies) + len(second.bodies) >= 40)
    assert len(first.bodies) == len(second.bodies) == 20
    assert {*first.bodies, *second.bodies} == numbers(40)


async def test_what_a_member_had_not_acknowledged_goes_to_the_next_and_nothing_else(broker: BrokerProcess) -> None:
    stuck = threading.Event()
    leaving = Inbox(lambda message, _: stuck.wait(200) and SUCCESS if message.body == b"5" else SUCCESS)
    successor = Inbox()
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        await fill(producer, "orders", 10, queue_count=1)
        async with running(consumer(broker.namesrv_addr, "group", "orders", leaving)):
            await until(lambda: len(leaving.bodies) == 10)
            await until_committed(broker.address, 5)
        async with running(consumer(broker.namesrv_addr, "group", "orders", successor)):
            await until(lambda: len(successor.bodies) >= 5)
            await producer.send(Message.of("orders", b"last"))
            await until(lambda: "last" in successor.bodies)
    stuck.set()
    assert sorted(successor.bodies) == ["5", "6", "7", "8", "9", "last"]


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "orderly"])
async def test_what_a_member_holds_goes_to_the_next_when_members_come_and_go_and_costs_no_redelivery(
    broker: BrokerProcess, orderly: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def hold(_: MessageExt, context: ConsumeContext) -> ConsumeStatus:
        context.hold(600)
        return SUCCESS

    holding, joining, successor = Inbox(hold), Inbox(), Inbox()
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        await fill(producer, "orders", 10, queue_count=2)
        async with running(consumer(broker.namesrv_addr, "group", "orders", holding, orderly=orderly)):
            await until(lambda: {message.queue_id for message in holding.messages} == {0, 1})
            async with running(consumer(broker.namesrv_addr, "group", "orders", joining, orderly=orderly)):
                await until(lambda: len(joining.bodies) == 5)
        async with running(consumer(broker.namesrv_addr, "group", "orders", successor, orderly=orderly)):
            await until(lambda: len(successor.bodies) == 5)
    assert {*joining.bodies, *successor.bodies} == numbers(10)
    assert {message.reconsume_times for inbox in (joining, successor) for message in inbox.messages} == {0}
    assert "listeners still run at shutdown" not in caplog.text


async def test_each_queue_is_consumed_in_order_while_members_come_and_failures_happen(broker: BrokerProcess) -> None:
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

    first, second = (consumer(broker.namesrv_addr, "group", "orders", Inbox(in_order), orderly=True) for _ in range(2))
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer, running(first):
        filling = asyncio.create_task(fill(producer, "orders", 120, queue_count=2))
        await until(lambda: sum(map(len, seen.values())) > 20)
        async with running(second):
            await until(lambda: any(queue.topic == "orders" for queue in second.queues))
            await filling
            await until(lambda: sum(map(len, seen.values())) >= 120)
    assert overlaps == []
    for queue_id in (0, 1):
        assert seen[queue_id] == list(range(queue_id, 120, 2))


async def test_a_message_that_keeps_failing_is_redelivered_and_ends_among_the_dead_letters(broker: BrokerProcess) -> None:
    def poison(message: MessageExt, context: ConsumeContext) -> ConsumeStatus:
        context.delay_level_when_next_consume = 1
        return LATER if message.body == b"poison" else SUCCESS

    inbox = Inbox(poison)
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        await producer.create_topic("orders", 1)
        async with running(consumer(broker.namesrv_addr, "group", "orders", inbox, max_reconsume_times=2)):
            await producer.send(Message.of("orders", b"poison"))
            await producer.send(Message.of("orders", b"good"))
            await until(lambda: len(inbox.bodies) == 4)
            async with running(PullConsumer("operator", namesrv_addr=broker.namesrv_addr)) as pulling:
                pulling.assign(await dead_letter_queues(pulling))
                (dead,) = await pulling.poll(60_000)
    attempts = [(message.topic, message.reconsume_times) for message in inbox.messages if message.body == b"poison"]
    assert attempts == [("orders", 0), ("orders", 1), ("orders", 2)]
    assert dead.body == b"poison"
    assert dead.properties["RETRY_TOPIC"] == "orders"


async def test_with_broadcasting_everyone_gets_everything_once_even_after_a_restart(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    def member(name: str, inbox: Inbox) -> object:
        return consumer(
            broker.namesrv_addr,
            "group",
            "orders",
            inbox,
            message_model=MessageModel.BROADCASTING,
            instance_name=name,
            local_offset_directory=tmp_path,
        )

    first, second, restarted = Inbox(), Inbox(), Inbox()
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        await fill(producer, "orders", 20)
        async with running(member("first", first), member("second", second)):  # type: ignore[type-var]
            await until(lambda: len(first.bodies) == len(second.bodies) == 20)
        async with running(member("first", restarted)):  # type: ignore[type-var]
            await producer.send(Message.of("orders", b"new"))
            await until(lambda: "new" in restarted.bodies)
    assert set(first.bodies) == set(second.bodies) == numbers(20)
    assert restarted.bodies == ["new"]


async def test_only_messages_with_a_wanted_tag_arrive(broker: BrokerProcess) -> None:
    inbox = Inbox()
    wanting = consumer(broker.namesrv_addr, "group", "orders", inbox)
    wanting.subscribe("orders", "Aa || paid")
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        await producer.create_topic("orders", 1)
        for tag in ("BB", "Aa", "other", "paid"):  # Aa and BB have the same hash code
            await producer.send(Message.of("orders", tag.encode(), tags=tag))
        async with running(wanting):
            await until(lambda: len(inbox.bodies) == 2)
    assert inbox.bodies == ["Aa", "paid"]


async def test_a_pull_consumer_goes_on_where_it_committed(broker: BrokerProcess) -> None:
    async with running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer:
        (queue,) = await fill(producer, "orders", 10, queue_count=1)
    async with running(PullConsumer("reader", namesrv_addr=broker.namesrv_addr)) as reader:
        reader.assign([queue])
        first = await reader.poll(60_000, max_messages=4)
        await reader.commit()
        assert await reader.committed(queue) == 4
        await reader.poll(60_000, max_messages=2)
    async with running(PullConsumer("reader", namesrv_addr=broker.namesrv_addr)) as reader:
        reader.assign([queue])
        second = await reader.poll(60_000, max_messages=4)
        reader.seek(queue, 9)
        last = await reader.poll(60_000)
        pulled = await reader.pull(queue, 2, max_messages=3)
        assert (await reader.min_offset(queue), await reader.max_offset(queue)) == (0, 10)
    assert [message.queue_offset for message in (*first, *second, *last)] == [0, 1, 2, 3, 4, 5, 6, 7, 9]
    assert ([message.queue_offset for message in pulled.messages], pulled.next_offset) == ([2, 3, 4], 5)
