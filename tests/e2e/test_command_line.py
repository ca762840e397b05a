"""Tests of rocketmq-admin as a process: its output while it runs, and its exit after Ctrl-C."""

import asyncio
import signal
import sys
from collections.abc import Callable

import pytest

from tests.conftest import BrokerProcess
from tests.e2e.tool import Tool

pytestmark = pytest.mark.e2e


async def test_tail_shows_a_new_message_at_once_and_ctrl_c_ends_it_quietly(start_broker: Callable[..., BrokerProcess]) -> None:
    broker = start_broker({})
    tool = Tool("--namesrv-addr", broker.namesrv_addr)
    await tool.said("send", "orders", "first")
    command = [sys.executable, "-m", "rocketmq_broker.admin", "-n", broker.namesrv_addr, "tail", "orders"]
    pipe = asyncio.subprocess.PIPE
    tail = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    assert tail.stdout is not None
    async with asyncio.timeout(60):
        assert (await tail.stdout.readline()).endswith(b"  first\n")
        await tool.said("send", "orders", "second")
        assert (await tail.stdout.readline()).endswith(b"  second\n")
        tail.send_signal(signal.SIGINT)
        assert await tail.communicate() == (b"", b"")
    assert tail.returncode == 130
