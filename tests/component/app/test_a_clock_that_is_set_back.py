"""Tests that timeouts and expirations are not delayed when a broker's clock is set back."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec
import pytest

from rocketmq_broker.app import Broker
from rocketmq_broker.protocol.bodies.group import LockBatchRequestBody, LockBatchResponseBody
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.queue_table import MessageQueueData
from rocketmq_broker.remoting import RemotingClient
from rocketmq_broker.server.clients import queue_locks
from rocketmq_broker.world import World, in_world
from tests.unit.server.conftest import PULL

AN_HOUR_MS = 3_600_000
QUEUE = MessageQueueData(broker_name="broker-a", queue_id=0, topic="TBW102")
WAITING = msgspec.structs.replace(PULL, topic="TBW102", sys_flag=6, suspend_timeout_millis=200, subscription="*")


class Clock:
    """A clock that returns the real time until the test sets it back."""

    def __init__(self) -> None:
        self.set_back_ms = 0

    def __call__(self) -> int:
        return time.time_ns() - self.set_back_ms * 1_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def address(new_broker: Callable[..., Broker], stack: AsyncExitStack, clock: Clock) -> str:
    with in_world(World(wall_ns=clock)):
        broker = new_broker()
    await broker.start()
    stack.push_async_callback(broker.stop)
    return broker.identity.address


@pytest.fixture
def client(new_client: Callable[..., RemotingClient]) -> RemotingClient:
    return new_client()


async def test_a_pull_that_waits_is_answered_when_its_time_is_up(address: str, client: RemotingClient, clock: Clock) -> None:
    pull = asyncio.ensure_future(client.invoke(address, RequestCode.PULL_MESSAGE, WAITING, timeout_ms=5000))
    await asyncio.sleep(0.1)
    clock.set_back_ms = AN_HOUR_MS
    assert (await pull).code == ResponseCode.PULL_NOT_FOUND


async def test_the_lock_of_a_consumer_that_died_ends(
    address: str, client: RemotingClient, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_locks, "LOCK_EXPIRES_MS", 50)

    async def lock(client_id: str) -> list[MessageQueueData]:
        body = LockBatchRequestBody(consumer_group="g", client_id=client_id, mq_set=[QUEUE]).encode()
        answer = await client.invoke(address, RequestCode.LOCK_BATCH_MQ, None, body, timeout_ms=5000)
        return LockBatchResponseBody.decode(answer.body).lock_ok_mq_set

    assert await lock("died") == [QUEUE]
    clock.set_back_ms = AN_HOUR_MS
    await asyncio.sleep(0.1)
    assert await lock("alive") == [QUEUE]
