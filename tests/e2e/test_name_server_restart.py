"""Tests that a restarted name server soon has the routes of brokers that register rarely."""

import asyncio
import sys
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Process, Processes, prints
from demo.system import add_broker
from rocketmq_broker.client import Producer
from rocketmq_broker.message import Message
from tests.e2e.clients import PATIENT, running

pytestmark = [pytest.mark.e2e]

PERIOD_MS = 60_000


@pytest.fixture
def name_server(processes: Processes, tmp_path: Path) -> tuple[Process, str]:
    """Returns a separate name server, which has not been started, and its address."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "rocketmq_broker.nameserver", "-p", str(port), "--kv-config", str(tmp_path / "kv.json")]
    return processes.add("name_server", command, is_ready=prints("boot success")), f"127.0.0.1:{port}"


async def send_one(namesrv_addr: str) -> None:
    """Sends a message with a new client, which has no routes yet."""
    async with running(Producer("p", namesrv_addr=namesrv_addr, **PATIENT)) as producer:
        async with asyncio.timeout(PERIOD_MS / 2000):
            while not await producer.is_connected():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await producer.send(Message.of("orders", b"x"))


def test_new_clients_find_the_broker_again(processes: Processes, name_server: tuple[Process, str], tmp_path: Path) -> None:
    process, address = name_server
    process.start()
    (port,) = free_ports(1)
    settings = {"namesrvAddr": address, "listenPort": str(port), "registerNameServerPeriod": str(PERIOD_MS)}
    add_broker(processes, tmp_path, settings).start()
    asyncio.run(send_one(address))
    process.kill()
    process.start()
    asyncio.run(send_one(address))
