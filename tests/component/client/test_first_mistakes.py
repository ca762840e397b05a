"""Tests that a mistake that is found only while a client runs causes a clear error message and no other harm."""

import asyncio

import pytest

from rocketmq_broker.client import (
    IllegalConfiguration,
    NameServerUnreachable,
    NotRunning,
    Producer,
    PullConsumer,
    TransactionProducer,
)
from rocketmq_broker.message import Message, MessageQueue
from rocketmq_broker.testing import RocketMQ
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.unit.testing.listeners import Transactions


async def test_another_program_in_place_of_a_name_server_is_named() -> None:
    async def answer_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer_nothing, "127.0.0.1", 0) as server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with running(Producer("p", namesrv_addr=address, send_timeout_ms=50)) as producer:
            with pytest.raises(NameServerUnreachable, match=f"check that {address} is the address of a name server"):
                await producer.send(Message.of("orders", b"x"))


async def test_what_is_no_message_is_refused_by_each_way_to_send(rocketmq: RocketMQ) -> None:
    async with running(TransactionProducer("p", Transactions(), namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer:
        for send in (producer.send, producer.send_oneway, producer.send_message_in_transaction):
            with pytest.raises(TypeError, match="message must be a Message"):
                await send("text")
        with pytest.raises(TypeError, match="messages must be a list of messages"):
            await producer.send_batch(Message.of("orders", b"x"))
        with pytest.raises(TypeError, match="queue must be a MessageQueue, not an int"):
            await producer.send(Message.of("orders", b"x"), 0)
        with pytest.raises(TypeError, match=r"timeout_ms must be an int, not '3'"):
            await producer.send(Message.of("orders", b"x"), timeout_ms="3")
        with pytest.raises(ValueError, match="timeout_ms must be at least 1, not 0"):
            await producer.send_batch([Message.of("orders", b"x")], timeout_ms=0)
        with pytest.raises(IllegalConfiguration, match="queue_count must be at least 1, not 0"):
            await producer.create_topic("orders", 0)


async def test_a_running_consumer_takes_subscriptions_and_no_other_listener(rocketmq: RocketMQ) -> None:
    inbox = Inbox()
    async with (
        running(consumer(rocketmq.namesrv_addr, "group", "orders", inbox)) as running_consumer,
        running(Producer("p", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer,
    ):
        with pytest.raises(NotRunning, match=r"register its listener before start\(\)"):
            running_consumer.register_message_listener(Inbox())
        await asyncio.to_thread(running_consumer.subscribe, "payments")
        await producer.send(Message.of("payments", b"from another topic"))
        await rocketmq.wait_until(lambda: inbox.bodies == ["from another topic"])
    with pytest.raises(NotRunning, match="consumer group was shut down"):
        running_consumer.subscribe("refunds")


async def test_a_pull_consumer_says_what_it_has_to_be_given(rocketmq: RocketMQ) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    pulling = PullConsumer("group", namesrv_addr=rocketmq.namesrv_addr)
    with pytest.raises(NotRunning, match="consumer group is not running: start it first"):
        await pulling.poll()
    async with running(pulling):
        with pytest.raises(
            IllegalConfiguration, match=r"group has no queues: call assign\(await consumer.queues\(topic\)\) first"
        ):
            await pulling.poll()
        with pytest.raises(TypeError, match="queues must be a list of MessageQueue, not a str"):
            pulling.assign("orders")
        with pytest.raises(TypeError, match="queue must be a MessageQueue, not a str"):
            pulling.assign(["orders"])
        with pytest.raises(IllegalConfiguration, match=r"is not assigned: call assign\(\[queue\]\) first"):
            pulling.seek(queue, 0)
        with pytest.raises(TypeError, match="offset must be an int, not '0'"):
            await pulling.pull(queue, "0")
        with pytest.raises(TypeError, match="queue must be a MessageQueue, not a str"):
            await pulling.max_offset("orders")
        with pytest.raises(NotRunning, match="was called from outside the event loop"):
            await asyncio.to_thread(pulling.assign, [queue])
    await pulling.shutdown()
    for ask in (pulling.poll, pulling.commit):
        with pytest.raises(NotRunning, match="consumer group is not running: it was shut down"):
            await ask()
