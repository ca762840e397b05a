"""Tests of the commands' output about popped messages that are not yet acknowledged."""

from typing import Any

import pytest

from rocketmq_broker.admin.health import commands
from rocketmq_broker.client import Message
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.server.popping import PoppedMessage, Popping
from rocketmq_broker.server.popping.hidden_messages import CheckPoint
from rocketmq_broker.server.popping.pop_log import PopEntry
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.command_line import CommandLine

HALF_A_MINUTE_MS = 30_000


def now_ms(rocketmq: SyncRocketMQ) -> int:
    return rocketmq._time.wall_ns() // 1_000_000


@pytest.fixture
def admin(rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setattr(commands, "now_ms", lambda: now_ms(rocketmq))
    return CommandLine(rocketmq)


def popping(rocketmq: SyncRocketMQ) -> Popping:
    serving = rocketmq._rocketmq._broker._serving
    assert serving is not None
    return serving.popping


def pop(rocketmq: SyncRocketMQ, **fields: Any) -> list[PoppedMessage]:
    fields = {"begin_at_end": False, "invisible_ms": HALF_A_MINUTE_MS, **fields}
    return rocketmq.run(popping(rocketmq).pop("credits", "orders", **fields))


def three_orders(rocketmq: SyncRocketMQ) -> None:
    producer = rocketmq.producer("shops")
    producer.create_topic("orders", 2)
    queue = MessageQueue("orders", rocketmq._rocketmq._broker.identity.name, 0)
    for _ in range(3):
        producer.send(Message.of("orders", b"order"), queue)


def test_messages_in_hand_are_no_lag(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    three_orders(rocketmq)
    sent_ms = now_ms(rocketmq)
    rocketmq.advance(seconds=5)
    pop(rocketmq, max_messages=2)
    popped_ms = now_ms(rocketmq)

    (row,) = admin.rows("groups")
    assert (row["group"], row["topics"], row["lag"], row["inHand"]) == ("credits", ["orders"], 1, 2)
    first, other = (row for row in admin.rows("groups", "--group", "credits") if row["topic"] == "orders")
    assert (first["inHand"], first["lag"], first["attempts"]) == (2, 1, 1)
    assert sent_ms - 1000 <= first["oldestMs"] <= sent_ms
    assert popped_ms - 1000 <= first["nextVisibleMs"] - HALF_A_MINUTE_MS <= popped_ms
    assert (other["inHand"], other["oldestMs"], other["nextVisibleMs"]) == (0, None, None)
    assert "next visible" in admin.said("groups", "-g", "credits")


def test_the_doctor_tells_what_is_in_hand_and_finds_no_fault_in_it(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    three_orders(rocketmq)
    pop(rocketmq)
    rocketmq.advance(seconds=10)
    said = admin.said("doctor")
    assert "The group credits has 3 messages in hand; an unacknowledged message is delivered again in" in said
    assert said.endswith("No problems found.\n")


def test_the_doctor_finds_messages_that_come_again_and_again(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    three_orders(rocketmq)
    for attempt in (1, 2):
        assert {message.attempt for message in pop(rocketmq)} == {attempt}
        assert "repeatedly" not in admin.said("doctor")
        rocketmq.advance(seconds=31)

    said = admin.stdout_of_failure("doctor")  # they wait for their third delivery
    assert (
        "WRONG  The group credits receives messages repeatedly, one of them for the 3rd time; it has 0 messages in hand." in said
    )
    assert {message.attempt for message in pop(rocketmq, max_messages=1)} == {3}
    assert "one of them for the 3rd time; it has 1 message in hand." in admin.stdout_of_failure("doctor")
    (row,) = admin.rows("groups")
    assert (row["topics"], row["lag"], row["inHand"]) == (["orders"], 2, 1)
    (retries,) = [row for row in admin.rows("groups", "--group", "credits") if row["topic"] == "%RETRY%credits_orders"]
    assert (retries["inHand"], retries["attempts"]) == (1, 3)

    for message in [*pop(rocketmq)]:
        rocketmq.run(popping(rocketmq).ack("credits", "orders", message.handle))
    rocketmq.advance(seconds=31)
    for message in pop(rocketmq):
        rocketmq.run(popping(rocketmq).ack("credits", "orders", message.handle))
    assert admin.said("doctor").endswith("No problems found.\n")
    assert [row["inHand"] for row in admin.rows("groups")] == [0]


def test_the_queue_of_orderly_pops_counts_its_attempts(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    three_orders(rocketmq)
    for attempt in (1, 2, 3):
        assert [message.attempt for message in pop(rocketmq, fifo=True, max_messages=1)] == [attempt]
        rocketmq.advance(seconds=31)
    first, _ = admin.rows("groups", "--group", "credits")
    assert (first["consumerOffset"], first["inHand"], first["attempts"]) == (0, 1, 3)
    assert "repeatedly" in admin.stdout_of_failure("doctor")


def test_the_doctor_names_a_group_that_gets_no_more_because_it_acknowledges_nothing(
    rocketmq: SyncRocketMQ, admin: CommandLine
) -> None:
    three_orders(rocketmq)
    assert "refuses pops" not in admin.said("doctor")
    entry = PopEntry("credits", "orders", 0, 0, 3, list(range(10_000)), now_ms(rocketmq), HALF_A_MINUTE_MS)
    popping(rocketmq).check_points.hidden.hide(CheckPoint(entry, 0))
    said = admin.stdout_of_failure("doctor")
    assert "It refuses pops: too many unacknowledged messages in queue 0 of topic orders: group credits has 10000" in said
