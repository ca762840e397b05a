"""Clients that take every file descriptor shut others out for a while; the broker goes on, says so in a line, and recovers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_broker.client import Producer
from rocketmq_broker.message import Message
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, running

pytestmark = pytest.mark.e2e
DESCRIPTORS = 200


@contextlib.contextmanager
def crowd(address: str, count: int) -> Iterator[None]:
    """So many connections that say nothing."""
    host, port = address.split(":")
    with contextlib.ExitStack() as open_sockets:
        for _ in range(count):
            sock = open_sockets.enter_context(socket.socket())
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sock.connect((host, int(port)))
        yield


def flush_process(broker_pid: int) -> int:
    (child,) = Path(f"/proc/{broker_pid}/task/{broker_pid}/children").read_text().split()
    return int(child)


async def test_a_broker_out_of_descriptors_stores_on_and_takes_connections_again(broker: BrokerProcess) -> None:
    assert broker.process._popen is not None
    pid = broker.process._popen.pid
    async with running(
        Producer("senders", namesrv_addr=broker.namesrv_addr, retry_times_when_send_failed=0, **PATIENT)
    ) as producer:
        await producer.send(Message.of("orders", b"0"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        with crowd(broker.address, 2 * DESCRIPTORS):
            await asyncio.sleep(2.5)
            assert len(os.listdir(f"/proc/{pid}/fd")) < DESCRIPTORS - 16
            for number in range(40):
                queue = (await producer.queues("orders"))[number % 4]
                await producer.send(Message.of("orders", b"x"), queue)
            os.kill(flush_process(pid), signal.SIGKILL)
            await producer.send(Message.of("orders", b"after the flush process was killed"))
    async with running(Producer("others", namesrv_addr=broker.namesrv_addr, **PATIENT)) as another:
        async with asyncio.timeout(30):
            await another.send(Message.of("orders", b"taken again"))
    output = broker.process.output()
    assert output.count("no more connections can be taken") == 1
    assert "Traceback" not in output
    assert len(output) < 2000
