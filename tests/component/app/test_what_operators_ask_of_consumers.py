"""Tests that Python consumers respond to `mqadmin consumerStatus` and similar commands as Java consumers do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Message, MessageExt, PushConsumer
from rocketmq_broker.client.instance.access import open_remoting
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.bodies.group import ConsumerConnection, GetConsumerStatusBody
from rocketmq_broker.protocol.bodies.running_info import CMResult, ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.group import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
)
from rocketmq_broker.testing import RocketMQ

SUCCESS, LATER = ConsumeStatus


class Operator:
    """An operator who sends requests to the broker of the fixture."""

    def __init__(self, rocketmq: RocketMQ) -> None:
        self._address = rocketmq.broker_addr
        self._remoting = open_remoting(None, None, None, {})

    async def ask(self, code: int, header: CommandHeader) -> RemotingCommand:
        return await self._remoting.invoke(self._address, code, header)

    async def client_id(self, group: str = "credits") -> str:
        answer = await self.ask(
            RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListRequestHeader(consumer_group=group)
        )
        (connection,) = ConsumerConnection.decode(answer.body).connection_set
        assert connection.client_id is not None
        return connection.client_id

    async def running_info(self, *, with_threads: bool = False) -> ConsumerRunningInfo:
        header = GetConsumerRunningInfoRequestHeader(
            consumer_group="credits", client_id=await self.client_id(), jstack_enable=with_threads
        )
        return ConsumerRunningInfo.decode((await self.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)).body)

    async def consume(self, message: str, group: str = "credits") -> ConsumeMessageDirectlyResult:
        header = ConsumeMessageDirectlyResultRequestHeader(consumer_group=group, client_id=await self.client_id(), msg_id=message)
        return ConsumeMessageDirectlyResult.decode((await self.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)).body)

    async def close(self) -> None:
        await self._remoting.close()


@pytest.fixture
async def operator(rocketmq: RocketMQ) -> AsyncIterator[Operator]:
    running = Operator(rocketmq)
    yield running
    await running.close()


class Listener:
    """A message listener that returns a given value or raises a given error."""

    def __init__(self, answer: object = SUCCESS) -> None:
        self.answer = answer
        self.got: list[str] = []

    async def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> Any:
        await asyncio.sleep(0)
        self.got += [message.text for message in messages]
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def with_consumer(rocketmq: RocketMQ, listener: Any, *texts: str, orderly: bool = False) -> tuple[PushConsumer, list[str]]:
    """Returns a consumer, and the offset message ids of the messages that were sent to it."""
    producer = await rocketmq.producer("shops")
    await producer.create_topic("orders", 1)
    consumer = await rocketmq.consumer("credits", "orders", listener, tags="paid || refunded", orderly=orderly)
    sent = [await producer.send(Message.of("orders", text, tags="paid")) for text in texts]
    await rocketmq.advance(seconds=30)
    return consumer, [each.offset_message_id for each in sent]


@pytest.mark.parametrize("orderly", [False, True])
async def test_a_consumer_tells_its_settings_subscriptions_queues_and_speeds(
    rocketmq: RocketMQ, operator: Operator, orderly: bool
) -> None:
    await with_consumer(rocketmq, Listener(), "order 1", "order 2", "order 3", orderly=orderly)
    info = await operator.running_info()
    properties = info.properties
    assert properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert properties["PROP_CONSUMEORDERLY"] == str(orderly).lower()
    assert properties["PROP_NAMESERVER_ADDR"] == rocketmq.namesrv_addr
    assert (properties["PROP_THREADPOOL_CORE_SIZE"], properties["consumeThreadMax"]) == ("20", "20")
    assert (properties["messageModel"], properties["consumerGroup"]) == ("CLUSTERING", "credits")
    assert properties["PROP_CLIENT_VERSION"] == "V4_9_7"
    assert 0 <= rocketmq.time.wall_ns() // 1_000_000 - int(properties["PROP_CONSUMER_START_TIMESTAMP"]) < 60_000

    assert {each.topic: each.sub_string for each in info.subscription_set} == {
        "orders": "paid || refunded",
        "%RETRY%credits": "*",
    }
    (queue,) = [each for each in info.mq_table if each.topic == "orders"]
    state = info.mq_table[queue]
    assert (state.commit_offset, state.cached_msg_count, state.locked, state.droped) == (3, 0, True, False)
    now_ms = rocketmq.time.wall_ns() // 1_000_000
    assert all(
        0 <= now_ms - at_ms < 60_000
        for at_ms in (state.last_pull_timestamp, state.last_consume_timestamp, state.last_lock_timestamp)
    )
    assert info.status_table["orders"].consume_ok_tps == 3 / 60
    assert info.status_table["%RETRY%credits"].consume_ok_tps == 0
    assert info.jstack is None


async def test_messages_that_wait_for_their_listener_are_told(rocketmq: RocketMQ, operator: Operator) -> None:
    async def holder(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        await context.hold_async(3600)
        return SUCCESS

    await with_consumer(rocketmq, holder, "order 1", "order 2")
    table = (await operator.running_info()).mq_table
    (state,) = [state for queue, state in table.items() if queue.topic == "orders"]
    assert (state.commit_offset, state.cached_msg_count) == (0, 2)
    assert (state.cached_msg_min_offset, state.cached_msg_max_offset) == (0, 1)


async def test_the_stacks_of_the_threads_are_told_if_they_are_asked_for(rocketmq: RocketMQ, operator: Operator) -> None:
    await with_consumer(rocketmq, Listener())
    dump = (await operator.running_info(with_threads=True)).jstack
    assert dump is not None
    assert "MainThread" in dump
    assert "thread_dump(" in dump


async def test_a_consumer_says_how_far_each_queue_is_consumed(rocketmq: RocketMQ, operator: Operator) -> None:
    await with_consumer(rocketmq, Listener(), "order 1", "order 2")
    header = GetConsumerStatusRequestHeader(topic="orders", group="credits")
    answer = await operator.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
    table = GetConsumerStatusBody.decode(answer.body).consumer_table
    assert {queue: offset for each in table.values() for queue, offset in each.items()} == {
        MessageQueue("orders", "broker-a", 0): 2
    }


@pytest.mark.parametrize(
    ("answer", "result", "remark"),
    [
        (SUCCESS, CMResult.CR_SUCCESS, None),
        (LATER, CMResult.CR_LATER, None),
        (None, CMResult.CR_RETURN_NULL, None),
        (LookupError("no database"), CMResult.CR_THROW_EXCEPTION, "LookupError: no database"),
    ],
)
@pytest.mark.parametrize("orderly", [False, True])
async def test_one_message_is_consumed_on_request_and_its_outcome_is_told(
    rocketmq: RocketMQ, operator: Operator, answer: object, result: CMResult, remark: str | None, orderly: bool
) -> None:
    listener = Listener()
    _, (message,) = await with_consumer(rocketmq, listener, "order 1", orderly=orderly)
    assert listener.got == ["order 1"]
    listener.answer = answer
    told = await operator.consume(message)
    assert listener.got == ["order 1", "order 1"]
    assert (told.consume_result, told.remark, told.order, told.auto_commit) == (result, remark, orderly, True)
    await rocketmq.advance(minutes=5)
    assert listener.got == ["order 1", "order 1"], "what was consumed on request moves no offset, and gives nothing back"


async def test_a_group_that_is_not_the_consumers_is_refused(rocketmq: RocketMQ, operator: Operator) -> None:
    consumer, _ = await with_consumer(rocketmq, Listener())
    header = GetConsumerRunningInfoRequestHeader(consumer_group="others", client_id=await operator.client_id())
    answer = await operator.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR, f"The Consumer <others> <{header.client_id}> not online",
    )  # fmt: skip
    assert consumer.group == "credits"
