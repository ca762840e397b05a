"""Fixtures that run whole brokers in the test's process, on free ports."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from rocketmq_broker.app import Broker
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.connections.connection import RequestHandler


def small_broker(store: Path, **settings: object) -> Broker:
    """Creates a broker with a small store. The caller starts and stops it."""
    given = {"store_path_root_dir": str(store), "listen_port": 0, "namesrv_listen_port": 0, **settings}
    return Broker(BrokerSettings(max_hash_slot_num=100, max_index_num=400, maped_file_size_commit_log=1 << 20, **given))


@pytest.fixture
def new_broker(tmp_path: Path) -> Callable[..., Broker]:
    """Returns a function that creates a broker. By default its small store is in `tmp_path`. The test starts and stops it."""
    return lambda **settings: small_broker(tmp_path, **settings)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """Yields an exit stack that is closed when the test ends."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def start_broker(new_broker: Callable[..., Broker], stack: AsyncExitStack) -> Callable[..., Awaitable[Broker]]:
    """Returns a function that starts a broker as `new_broker` creates it. The broker is stopped when the test ends."""

    async def start(**settings: object) -> Broker:
        broker = new_broker(**settings)
        await broker.start()
        stack.push_async_callback(broker.stop)
        return broker

    return start


@pytest.fixture
def new_client(stack: AsyncExitStack) -> Callable[..., RemotingClient]:
    """Returns a function that creates clients. They are closed when the test ends."""

    def new(handler: RequestHandler | None = None) -> RemotingClient:
        client = RemotingClient(handler)
        stack.push_async_callback(client.close)
        return client

    return new
