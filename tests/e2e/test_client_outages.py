"""Tests of the client while servers are unavailable: not yet started, killed or restarted."""

import asyncio
import contextlib

import pytest

from rocketmq_broker.client import ClientError, EventLoopThread, NotRunning, Producer, SendFailed
from rocketmq_broker.message import Message
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


async def test_a_consumer_started_before_everything_consumes_when_it_is_there(broker: BrokerProcess) -> None:
    broker.process.kill()
    inbox = Inbox()
    async with (
        running(consumer(broker.namesrv_addr, "group", "orders", inbox)),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):
        await asyncio.to_thread(broker.process.start)
        await producer.send(Message.of("orders", b"first"))
        await until(lambda: inbox.bodies == ["first"])


async def test_all_that_was_sent_arrives_however_often_the_broker_is_killed(broker: BrokerProcess) -> None:
    inbox = Inbox()
    sent: list[str] = []
    async with (
        running(consumer(broker.namesrv_addr, "group", "orders", inbox, consume_message_batch_max_size=4)),
        running(Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)) as producer,
    ):

        async def send_on() -> None:
            for number in range(100_000):
                try:
                    await producer.send(Message.of("orders", str(number).encode()))
                    sent.append(str(number))
                except SendFailed:
                    await asyncio.sleep(0.1)
                except ClientError as error:
                    raise AssertionError("an outage must raise SendFailed once the route is known") from error
                await asyncio.sleep(0.002)

        await producer.send(Message.of("orders", b"begin"))
        sending = asyncio.create_task(send_on())
        for _ in range(2):
            so_far = len(sent)
            await until(lambda so_far=so_far: len(sent) > so_far + 20)  # type: ignore[misc]
            broker.process.kill()
            await asyncio.to_thread(broker.process.start)
        so_far = len(sent)
        await until(lambda: len(sent) > so_far + 20 or sending.done())
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        await until(lambda: set(sent) <= set(inbox.bodies))


def test_threads_use_the_client_through_the_event_loop_thread(broker: BrokerProcess) -> None:
    producer = Producer("p", namesrv_addr=broker.namesrv_addr, **PATIENT)
    with EventLoopThread() as loop:
        loop.run(producer.start())
        result = loop.run(producer.send(Message.of("orders", b"x")), timeout_s=60)
        loop.run(producer.shutdown())
    assert result.queue.topic == "orders"
    with pytest.raises(NotRunning):
        loop.run(producer.send(Message.of("orders", b"x")))
