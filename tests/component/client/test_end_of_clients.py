"""Tests of the client while servers are unavailable: not yet started, killed or restarted."""

import asyncio

import pytest

from demo.ports import free_ports
from rocketmq_broker.client import NoRoute, Producer
from rocketmq_broker.message import Message
from rocketmq_broker.testing import RocketMQ
from tests.e2e.clients import PATIENT, Inbox, consumer, running


@pytest.fixture
def nobody() -> str:
    """Returns an address at which no server listens."""
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


@pytest.mark.parametrize("rocketmq_settings", [{"autoCreateTopicEnable": "false"}], ids=["made-by-nobody"])
async def test_a_topic_that_nobody_creates_is_named(rocketmq_settings: object, rocketmq: RocketMQ) -> None:
    async with running(Producer("p", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer:
        with pytest.raises(NoRoute, match="no broker has topic orders"):
            await producer.send(Message.of("orders", b"x"))
        await producer.create_topic("orders")
        await producer.send(Message.of("orders", b"x"))


async def test_any_of_several_name_servers_will_do(rocketmq: RocketMQ, nobody: str) -> None:
    inbox = Inbox()
    addresses = f"{nobody};{rocketmq.namesrv_addr}"
    async with (
        running(Producer("p", namesrv_addr=addresses, **PATIENT)) as producer,
        running(consumer(addresses, "group", "orders", inbox)),
    ):
        await producer.send(Message.of("orders", b"x"))
        await rocketmq.wait_until(lambda: inbox.bodies == ["x"])


async def test_no_task_outlives_a_client(rocketmq: RocketMQ) -> None:
    before = asyncio.all_tasks()
    async with (
        running(consumer(rocketmq.namesrv_addr, "group", "orders", Inbox())),
        running(Producer("p", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer,
    ):
        await producer.send(Message.of("orders", b"x"))
    assert asyncio.all_tasks() == before
