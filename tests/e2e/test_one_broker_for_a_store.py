"""Tests that two brokers never acknowledge messages in the same commit log.

The second broker does not start, or the first broker exits.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.client import ClientError, Producer
from rocketmq_broker.message import Message
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, running

pytestmark = pytest.mark.e2e
CANNOT_START, CANNOT_GO_ON = 1, 3


async def send_for_ever(producer: Producer) -> None:
    while True:
        await producer.send(Message.of("orders", b"x"))


def test_two_roots_with_one_commit_log_start_one_broker(start_broker: Callable[..., BrokerProcess], tmp_path: Path) -> None:
    shared = {"storePathCommitLog": str(tmp_path / "log")}
    start_broker(shared)
    second = start_broker()
    second.process.stop()
    config = tmp_path / "broker-b" / "broker.conf"
    config.write_text(f"{config.read_text()}\nstorePathCommitLog={tmp_path / 'log'}\n")

    second.process.spawn()

    assert second.process.wait(60) == CANNOT_START
    assert second.process.output() == f"The broker cannot start: the store {tmp_path}/log is in use by another broker\n"


async def test_a_broker_whose_lock_is_removed_acknowledges_nothing_more_and_ends(broker: BrokerProcess) -> None:
    async with running(
        Producer("senders", namesrv_addr=broker.namesrv_addr, retry_times_when_send_failed=0, **PATIENT)
    ) as producer:
        await producer.send(Message.of("orders", b"0"))
        (broker.store / "lock").rename(broker.store / "lock.away")
        async with asyncio.timeout(60):
            with pytest.raises(ClientError):
                await send_for_ever(producer)
    assert await asyncio.to_thread(broker.process.wait, 60) == CANNOT_GO_ON
    output = broker.process.output()
    assert output.count("CRITICAL") == 1
    assert f"{broker.store}/lock was removed or replaced while this broker holds its lock" in output
    assert "Traceback" not in output
