"""Tests of the commands that send, find and trace single messages."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from rocketmq_broker.client import ConsumeFromWhere, Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.command_line import CommandLine
from tests.unit.testing.listeners import Consumption


def test_a_message_is_sent_with_key_tag_and_properties(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    said = admin.said(
        "send", "orders", "paid", "--key", "order-1", "--key", "ada", "--tag", "created", "--property", "colour=red=x"
    )
    (message,) = rocketmq.messages("orders")
    assert (message.body, message.keys, message.tags) == (b"paid", ("order-1", "ada"), "created")
    assert message.properties["colour"] == "red=x"
    assert said.startswith(f"sent: {message.transaction_id} to orders, queue {message.queue_id} at 0 (broker 127.0.0.1:")


def test_a_body_is_read_from_the_standard_input_byte_for_byte(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    admin.said("send", "orders", "-", stdin=b"\xff\x00 paid\n")
    assert [message.body for message in rocketmq.messages("orders")] == [b"\xff\x00 paid\n"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["orders", ""], "the body of a message to topic orders must not be empty"),
        (["or ders", "x"], "illegal characters"),
        (["RMQ_SYS_TRANS_HALF_TOPIC", "x"], "is reserved for the broker"),
        (["orders", "x", "--key", "a b"], "space"),
        (["orders", "x", "--property", "colour"], "invalid property colour: expected NAME=VALUE"),
        (["orders", "x", "--property", "UNIQ_KEY=1"], "UNIQ_KEY"),
    ],
)
def test_what_no_broker_would_take_is_refused_with_a_sentence(admin: CommandLine, arguments: list[str], why: str) -> None:
    assert why in admin.refused("send", *arguments, exit_code=2)


class TestWithoutNewTopics:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"autoCreateTopicEnable": "false"}

    def test_a_topic_that_nobody_may_make_is_refused(self, admin: CommandLine) -> None:
        assert "No topic route info" in (said := admin.refused("send", "orders", "x")) or "not exist" in said


def test_a_message_is_found_by_key_by_its_id_and_by_where_it_is_stored(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    (sent,) = admin.rows("send", "orders", "paid", "--key", "order-1")
    for word in ("order-1", sent["messageId"], sent["offsetMessageId"]):
        (row,) = admin.rows("message", word)
        assert (row["message"]["topic"], row["message"]["body"], row["message"]["keys"]) == ("orders", "paid", ["order-1"])
        assert row["message"]["messageId"] == sent["messageId"]
    assert [row["message"]["body"] for row in admin.rows("message", "order-1", "--topic", "orders")] == ["paid"]
    shown = admin.said("message", "order-1")
    assert all(word in shown for word in ("orders, queue", sent["messageId"], sent["offsetMessageId"], "paid"))


def test_a_message_that_is_not_there_is_refused(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    admin.said("send", "orders", "paid", "--key", "order-1")
    assert admin.refused("message", "order-2") == "message not found: order-2\n"
    assert admin.refused("message", "order-1", "--topic", "credits") == "message not found: order-1 in the topic credits\n"
    assert "message not found" in admin.refused("message", "7F00000100002A9F00000000000F0000")


def test_a_body_that_is_no_text_is_shown_in_base64(admin: CommandLine) -> None:
    admin.said("send", "orders", "-", "--key", "odd", stdin=b"\xff\x00")
    (row,) = admin.rows("message", "odd")
    assert (row["message"]["body"], row["message"]["bodyBase64"]) == (None, "/wA=")
    assert "base64: /wA=" in admin.said("message", "odd")
    assert "base64: /wA=" in admin.said("tail", "orders", "--count", "1")


def test_a_message_says_which_groups_have_consumed_it(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    producer = rocketmq.producer("shops")
    producer.create_topic("orders", 1)
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    client = rocketmq.consumer("credits", "orders", Consumption(), consume_from_where=first)
    producer.send(Message.of("orders", b"paid", keys=["order-1"]))
    rocketmq.advance(seconds=40)
    client.shutdown()
    producer.send(Message.of("orders", b"paid", keys=["order-2"]))

    (early,), (late,) = admin.rows("message", "order-1"), admin.rows("message", "order-2")
    assert early["consumedBy"] == [{"group": "credits", "isConsumed": True}]
    assert late["consumedBy"] == [{"group": "credits", "isConsumed": False}]
    assert "not yet by" in admin.said("message", "order-2")


def test_tail_begins_with_the_last_messages_in_the_order_in_which_they_were_stored(
    rocketmq: SyncRocketMQ, admin: CommandLine
) -> None:
    for number in range(6):
        admin.said("send", "orders", f"order {number}", "--key", f"order-{number}")
    lines = admin.said("tail", "orders", "--last", "3", "--count", "3").splitlines()
    assert [line.rpartition("  ")[2] for line in lines] == ["order 3", "order 4", "order 5"]
    assert "[order-5]" in lines[2]


def test_tail_shows_what_comes_and_ends_after_as_many_as_were_asked_for(
    rocketmq: SyncRocketMQ, admin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = rocketmq.producer("shops")
    producer.create_topic("orders", 2)
    producer.send(Message.of("orders", b"before"))

    async def let_one_come(_: float) -> None:
        await asyncio.to_thread(producer.send, Message.of("orders", b"new\x1b[2J"))

    monkeypatch.setattr("rocketmq_broker.admin.messages.following.asyncio.sleep", let_one_come)
    lines = [json.loads(line) for line in admin.said("tail", "orders", "-n", "0", "-c", "2", "--json").splitlines()]
    assert [line["body"] for line in lines] == ["new\x1b[2J", "new\x1b[2J"]


def test_tail_of_a_topic_that_is_not_there_is_refused(admin: CommandLine) -> None:
    assert "topic not found: orders" in admin.refused("tail", "orders")


def test_tail_goes_on_when_a_broker_that_was_away_is_back(
    rocketmq: SyncRocketMQ, admin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = rocketmq.producer("shops")
    producer.send(Message.of("orders", b"before"))

    def come_back() -> None:
        rocketmq.restart()
        rocketmq.producer("others").send(Message.of("orders", b"after"))

    steps = iter([rocketmq.crash, lambda: None, come_back])

    async def next_step(_: float) -> None:
        await asyncio.to_thread(next(steps))

    monkeypatch.setattr("rocketmq_broker.admin.messages.following.asyncio.sleep", next_step)
    output = admin.output("tail", "orders", "-n", "0", "-c", "1")
    assert output.stdout.endswith("  after\n")
    assert output.stderr.count("retrying until the broker responds") == 1
