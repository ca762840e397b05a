"""Fixtures that run whole brokers in the test's process, on free ports."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from rocketmq_broker.app import Broker
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.connections.connection import RequestHandler


@pytest.fixture
def new_broker(tmp_path: Path) -> Callable[..., Broker]:
    """Returns a function that creates a broker. By default its small store is in `tmp_path`. The test starts and stops it."""

    def new(**settings: object) -> Broker:
        given = {"store_path_root_dir": str(tmp_path), "listen_port": 0, "namesrv_listen_port": 0, **settings}
        return Broker(BrokerSettings(max_hash_slot_num=100, max_index_num=400, maped_file_size_commit_log=1 << 20, **given))

    return new


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """Yields an exit stack that is closed when the test ends."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def new_client(stack: AsyncExitStack) -> Callable[..., RemotingClient]:
    """Returns a function that creates clients. They are closed when the test ends."""

    def new(handler: RequestHandler | None = None) -> RemotingClient:
        client = RemotingClient(handler)
        stack.push_async_callback(client.close)
        return client

    return new
