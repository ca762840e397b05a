"""Tests that misbehaving clients do not block others and do not make the broker's memory grow without limit."""

import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import psutil
import pytest

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import encode_request
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from tests.e2e.clients import SEND

pytestmark = pytest.mark.e2e

MEBIBYTE = 1024 * 1024
PATIENCE_S = 20
MAX_GROWTH_MIB = 150
"""More than 64 MiB unsent to one connection, and what a frame or two take."""
PULL = PullMessageRequestHeader(
    consumer_group="greedy",
    topic="orders",
    queue_id=0,
    queue_offset=0,
    max_msg_nums=32,
    sys_flag=4,
    commit_offset=0,
    suspend_timeout_millis=0,
    subscription="*",
    sub_version=0,
)


class Victim:
    """A broker, and a client that behaves normally."""

    def __init__(self, broker: Any) -> None:
        self.address: str = broker.address
        self._process = psutil.Process(broker.process.pid)
        self._client = RemotingClient()
        self._memory_before = 0.0

    async def send(self, body: bytes = b"body") -> None:
        answer = await self._client.invoke(self.address, RequestCode.SEND_MESSAGE_V2, SEND, body, timeout_ms=PATIENCE_S * 1000)
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    def connect(self) -> socket.socket:
        host, _, port = self.address.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE_S)

    def note_memory(self) -> None:
        self._memory_before = self._memory_mib()

    def assert_not_grown(self) -> None:
        assert self._memory_mib() - self._memory_before < MAX_GROWTH_MIB

    async def close(self) -> None:
        await self._client.close()

    def _memory_mib(self) -> float:
        return float(self._process.memory_info().rss / MEBIBYTE)


@pytest.fixture
async def victim(start_broker: Callable[..., Any]) -> AsyncIterator[Victim]:
    victim = Victim(start_broker())
    await victim.send()
    victim.note_memory()
    yield victim
    victim.assert_not_grown()
    await victim.close()


async def test_a_consumer_that_never_reads_is_not_served_without_end(victim: Victim) -> None:
    for _ in range(32):
        await victim.send(bytes(200_000))
    victim.note_memory()
    pull = encode_request(RequestCode.PULL_MESSAGE, PULL, opaque=1)
    greedy = victim.connect()
    greedy.setblocking(False)
    for _ in range(400):
        with contextlib.suppress(BlockingIOError, ConnectionResetError, BrokenPipeError):
            greedy.send(pull * 20)
        await victim.send()
        victim.assert_not_grown()
    greedy.close()
