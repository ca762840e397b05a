"""Tests of the admin commands with a real Apache RocketMQ: topics, groups, messages, timelines and dead letters."""

from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.client import Producer, TransactionProducer
from rocketmq_broker.message import Message
from tests.e2e.clients import PATIENT, Database, Inbox, consumer, running
from tests.e2e.tool import Tool
from tests.foreign.apache.cluster import apache_rocketmq
from tests.unit.testing.listeners import UNKNOWN, Transactions
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow]


def attempts(inbox: Inbox, body: str = "kept") -> list[int]:
    """Returns the number of earlier redeliveries at each delivery of the message."""
    return [message.reconsume_times for message in inbox.messages if message.body.decode() == body]


def an_order(body: bytes = b"kept", key: str = "order-1") -> Message:
    return Message.of("orders", body, tags="created", keys=[key], user_properties={"customer": "ada"})


async def look_at_everything(tool: Tool, namesrv_addr: str) -> dict[str, Any]:
    """Runs all commands on a message sent by hand and a transaction settled by a check-back. Returns the timeline."""
    inbox = Inbox()
    (sent,) = await tool.rows("send", "orders", "by hand", "--key", "order-1")
    async with (
        running(consumer(namesrv_addr, "credits", "orders", inbox)),
        running(TransactionProducer("shops", Transactions(UNKNOWN), namesrv_addr=namesrv_addr)) as producer,
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


async def test_all_commands_show_what_apaches_broker_holds(tmp_path: Path) -> None:
    settings = {"TRANSACTION_TIMEOUT_MS": "1000", "CHECK_INTERVAL_MS": "1000"}
    with apache_rocketmq(tmp_path / "apache", settings=settings) as namesrv_addr:
        tool = Tool("-n", namesrv_addr)
        timeline = await look_at_everything(tool, namesrv_addr)
        assert timeline["state"] == "committed"
        missing = [event for event in timeline["events"] if "times, producers and answers" in event["what"]]
        assert [event["onRecord"] for event in missing] == ["not on record"]
        doctor = await tool("doctor")
        assert "it is an Apache broker" in doctor.stdout
        assert (doctor.returncode, doctor.stderr) in ((0, ""), (1, ""))


async def test_on_apaches_broker_discarded_messages_are_listed_and_resumed_once(tmp_path: Path) -> None:
    settings = {"TRANSACTION_TIMEOUT_MS": "1000", "CHECK_INTERVAL_MS": "1000", "CHECK_MAX": "1"}
    with apache_rocketmq(tmp_path / "apache", settings=settings) as namesrv_addr:
        tool, listener = Tool("-n", namesrv_addr), Transactions(UNKNOWN, UNKNOWN)
        assert await tool.said("discarded") == "no discarded messages\n"
        async with running(TransactionProducer("orders", listener, namesrv_addr=namesrv_addr)) as producer:
            sent = await producer.send_message_in_transaction(Message.of("orders", b"kept", keys=["order-1"]))
            (lost,) = await tool.wait_for("discarded")
            assert await producer.count_discarded() == 1
            assert (lost["transactionId"], lost["topic"], lost["isResumed"]) == (sent.transaction_id, "orders", False)
            for command in (["pending"], ["show", "order-1"], ["decided"], ["decide", "x", "--commit", "--reason", "y"]):
                done = await tool(*command)
                assert (done.returncode, "it is not part of Apache RocketMQ" in done.stderr) == (1, True)
            await tool.said("resume", lost["messageId"])
            again = await tool("resume", lost["messageId"])
            assert (again.returncode, "discarded message already resumed" in again.stderr) == (1, True)


async def test_apaches_broker_lists_shows_and_retries_and_cannot_dismiss(tmp_path: Path) -> None:
    with apache_rocketmq(tmp_path / "apache") as namesrv_addr:
        tool, database = Tool("-n", namesrv_addr), Database()
        inbox, others = Inbox(database.consume), Inbox()
        async with (
            running(consumer(namesrv_addr, "credits", "orders", inbox, max_reconsume_times=0)),
            running(consumer(namesrv_addr, "mails", "orders", others)),
            running(Producer("p", namesrv_addr=namesrv_addr, **PATIENT)) as producer,
        ):
            sent = await producer.send(an_order())
            (letter,) = await tool.wait_for("dead-letters", "list", "credits")
            (group,) = await tool.rows("dead-letters", "list")
            assert (group["consumerGroup"], group["untreated"], group["total"]) == ("credits", None, 1)
            (shown,) = await tool.rows("dead-letters", "show", sent.message_id)
            assert (shown["body"], shown["properties"]["customer"]) == ("kept", "ada")
            refusal = await tool.refused("dead-letters", "dismiss", "order-1", "--reason", "x")
            assert "it is not part of Apache RocketMQ" in refusal

            database.is_there = True
            await tool.said("dead-letters", "retry", "order-1")
            await until(lambda: attempts(inbox) == [0, 0])
            assert "was already retried: use --again" in await tool.refused("dead-letters", "retry", letter["offsetMessageId"])
            await tool.said("dead-letters", "retry", "order-1", "--again")
            await until(lambda: attempts(inbox) == [0, 0, 0])
        last = inbox.messages[-1]
        assert (last.topic, last.message_id, last.properties["customer"]) == ("orders", sent.message_id, "ada")
        assert last.properties["DEAD_LETTER_RETRIES"] == "2"
        assert others.bodies == ["kept"]
