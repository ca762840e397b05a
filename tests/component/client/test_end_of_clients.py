"""Tests that a client leaves no task behind."""

import asyncio

from rocketmq_broker.client import Producer
from rocketmq_broker.message import Message
from rocketmq_broker.testing import RocketMQ
from tests.e2e.clients import PATIENT, Inbox, consumer, running


async def test_no_task_outlives_a_client(rocketmq: RocketMQ) -> None:
    before = asyncio.all_tasks()
    async with (
        running(consumer(rocketmq.namesrv_addr, "group", "orders", Inbox())),
        running(Producer("p", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer,
    ):
        await producer.send(Message.of("orders", b"x"))
    assert asyncio.all_tasks() == before
