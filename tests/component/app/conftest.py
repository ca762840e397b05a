"""Whole brokers in the test's own process, on any free ports."""

from __future__ import annotations

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
    """Makes a broker, with a small store below tmp_path unless the settings say otherwise; the test starts and stops it."""

    def new(**settings: object) -> Broker:
        given = {"store_path_root_dir": str(tmp_path), "listen_port": 0, "namesrv_listen_port": 0, **settings}
        return Broker(BrokerSettings(max_hash_slot_num=100, max_index_num=400, maped_file_size_commit_log=1 << 20, **given))

    return new


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    """What is entered here is left when the test ends."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def new_client(stack: AsyncExitStack) -> Callable[..., RemotingClient]:
    """Makes a client that is closed when the test ends."""

    def new(handler: RequestHandler | None = None) -> RemotingClient:
        client = RemotingClient(handler)
        stack.push_async_callback(client.close)
        return client

    return new
