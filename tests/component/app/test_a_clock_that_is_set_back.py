"""Tests that timeouts and expirations are not delayed when a broker's clock is set back."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rocketmq_broker.app import Broker
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.protocol.bodies.group import LockBatchRequestBody, LockBatchResponseBody
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader
from rocketmq_broker.protocol.queue_table import MessageQueueData
from rocketmq_broker.remoting import RemotingClient
from rocketmq_broker.server.clients import queue_locks
from rocketmq_broker.world import World, in_world

AN_HOUR_MS = 3_600_000
QUEUE = MessageQueueData(broker_name="broker-a", queue_id=0, topic="TBW102")
PULL = PullMessageRequestHeader(
    consumer_group="g", topic="TBW102", queue_id=0, queue_offset=0, max_msg_nums=1, sys_flag=6, commit_offset=0,
    suspend_timeout_millis=200, subscription="*", sub_version=0,
)  # fmt: skip


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
async def address(tmp_path: Path, clock: Clock) -> AsyncIterator[str]:
    settings = BrokerSettings(
        store_path_root_dir=str(tmp_path), listen_port=0, namesrv_listen_port=0, max_hash_slot_num=100, max_index_num=400,
        maped_file_size_commit_log=1 << 20,
    )  # fmt: skip
    with in_world(World(wall_ns=clock)):
        broker = Broker(settings)
    await broker.start()
    yield broker.identity.address
    await broker.stop()


@pytest.fixture
async def client() -> AsyncIterator[RemotingClient]:
    opened = RemotingClient()
    yield opened
    await opened.close()


async def test_a_pull_that_waits_is_answered_when_its_time_is_up(address: str, client: RemotingClient, clock: Clock) -> None:
    pull = asyncio.ensure_future(client.invoke(address, RequestCode.PULL_MESSAGE, PULL, timeout_ms=5000))
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
