"""Fixtures with a broker that runs the proxy, and with a client of its API."""

from collections.abc import AsyncIterator

import pytest

from rocketmq_broker.testing import RocketMQ
from tests.component.proxy.api_client import ApiClient, connected


@pytest.fixture
async def rocketmq() -> AsyncIterator[RocketMQ]:
    async with RocketMQ({"grpcServerPort": 0, "transactionTimeOut": 1000, "transactionCheckInterval": 1000}) as running:
        yield running


@pytest.fixture
async def client(rocketmq: RocketMQ) -> AsyncIterator[ApiClient]:
    async with connected(rocketmq.grpc_endpoint) as client:
        yield client
