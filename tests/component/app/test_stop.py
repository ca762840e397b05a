"""Tests of a broker's work while it stops."""

import asyncio
from collections.abc import Awaitable, Callable

from rocketmq_broker.app import Broker
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.remoting.client import RemotingClient
from tests.unit.server.sending.test_reply_processor import REQUESTER, V2


async def test_a_reply_that_was_taken_is_answered(
    start_broker: Callable[..., Awaitable[Broker]], new_client: Callable[..., RemotingClient]
) -> None:
    broker, requester, replier = await start_broker(), new_client(), new_client()
    address = broker.identity.address
    heartbeat = HeartbeatData(client_id=REQUESTER, producer_data_set=[ProducerData(group_name="requesters")])
    await requester.invoke(address, RequestCode.HEART_BEAT, None, heartbeat.encode())
    answer = asyncio.create_task(replier.invoke(address, RequestCode.SEND_REPLY_MESSAGE_V2, V2, b"hello", timeout_ms=20_000))
    async with asyncio.timeout(20):
        while not any(task.get_name() == "await the results of a reply" for task in asyncio.all_tasks()):  # noqa: ASYNC110
            await asyncio.sleep(0)
    await broker.stop()
    assert (await answer).remark == f"push reply message to {REQUESTER} fail.", "its requester takes no replies"
