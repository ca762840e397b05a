"""Operators look at topics, groups, messages and the timeline of a transaction: rocketmq-admin against running brokers."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.client import LocalTransactionState, TransactionProducer
from rocketmq_broker.message import Message, MessageExt
from tests.conftest import BrokerProcess
from tests.e2e.clients import Inbox, consumer, running
from tests.e2e.tool import Tool
from tests.foreign.apache.cluster import apache_rocketmq
from tests.waiting import until

pytestmark = pytest.mark.e2e


class CommitsWhenAsked:
    """Decides nothing at first, and COMMIT at the check-back."""

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE


async def look_at_everything(tool: Tool, namesrv_addr: str) -> dict[str, Any]:
    """A message sent by hand and a transaction settled by check-back, as all commands show them; returns the timeline."""
    inbox = Inbox()
    (sent,) = await tool.rows("send", "orders", "by hand", "--key", "order-1")
    async with (
        running(consumer(namesrv_addr, "credits", "orders", inbox)),
        running(TransactionProducer("shops", CommitsWhenAsked(), namesrv_addr=namesrv_addr)) as producer,
    ):
        await producer.send_message_in_transaction(Message.of("orders", b"asked", keys=["order-2"]))
        await until(lambda: any(message.body == b"asked" for message in inbox.messages))
        assert [row["online"] for row in await tool.rows("groups") if row["group"] == "credits"] == [1]
    (topic,) = [row for row in await tool.rows("topics") if row["topic"] == "orders"]
    assert topic["messages"] == 2
    (group,) = [row for row in await tool.rows("groups") if row["group"] == "credits"]
    assert (group["topics"], group["lag"]) == (["orders"], 0)  # a consumer that shuts down has stored its offsets
    queues = await tool.rows("groups", "--group", "credits")
    assert sum(row["consumerOffset"] for row in queues if row["topic"] == "orders") == 2
    for word in ("order-1", sent["messageId"], sent["offsetMessageId"]):
        assert [row["message"]["body"] for row in await tool.rows("message", word, "--topic", "orders")] == ["by hand"]
    lines = (await tool.said("tail", "orders", "--count", "2")).splitlines()
    assert [line.rpartition("  ")[2] for line in lines] == ["by hand", "asked"]
    (timeline,) = await tool.rows("timeline", "order-2")
    return timeline


async def test_all_commands_show_what_a_broker_holds(start_broker: Callable[..., BrokerProcess]) -> None:
    broker = start_broker({"transactionTimeOut": "1000", "transactionCheckInterval": "1000"})
    tool = Tool("--namesrv-addr", broker.namesrv_addr)
    timeline = await look_at_everything(tool, broker.namesrv_addr)
    assert timeline["state"] == "committed"
    told = [event["what"] for event in timeline["events"]]
    assert any("answers COMMIT" in what for what in told)
    assert (await tool.said("doctor")).endswith("All is well.\n")


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


@pytest.mark.java
@pytest.mark.slow
async def test_all_commands_show_what_apaches_broker_holds(tmp_path: Path) -> None:
    settings = {"TRANSACTION_TIMEOUT_MS": "1000", "CHECK_INTERVAL_MS": "1000"}
    with apache_rocketmq(tmp_path / "apache", settings=settings) as namesrv_addr:
        tool = Tool("-n", namesrv_addr)
        timeline = await look_at_everything(tool, namesrv_addr)
        assert timeline["state"] == "committed"
        missing = [event for event in timeline["events"] if "whom the broker asked" in event["what"]]
        assert [event["onRecord"] for event in missing] == ["not on record"]
        doctor = await tool("doctor")
        assert "it is one of Apache's" in doctor.stdout
        assert (doctor.returncode, doctor.stderr) in ((0, ""), (1, ""))
