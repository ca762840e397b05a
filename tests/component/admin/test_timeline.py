"""Tests of a transaction's timeline, including events that are not recorded."""

from collections.abc import Mapping
from typing import Any

import pytest

from rocketmq_broker.client import LocalTransactionState, Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.command_line import CommandLine
from tests.unit.testing.listeners import COMMIT, ROLLBACK, UNKNOWN, Consumption, InTurn


def order(rocketmq: SyncRocketMQ, *states: LocalTransactionState) -> None:
    producer = rocketmq.transaction_producer("shops", InTurn(*states))
    producer.send_message_in_transaction(Message.of("orders", b"paid", keys=["order-1"]))


def story(admin: CommandLine) -> tuple[dict[str, Any], list[str]]:
    (row,) = admin.rows("timeline", "order-1")
    return row, [event["what"] for event in row["events"]]


def test_a_commit_is_told_from_half_message_to_visible_message(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    order(rocketmq, COMMIT)
    rocketmq.advance(seconds=1)
    row, told = story(admin)
    assert (row["state"], row["producerGroup"], row["topic"], row["keys"]) == ("committed", "shops", "orders", ["order-1"])
    assert told[0].startswith("half message of shops at 127.0.0.1:")
    assert told[-1].startswith("COMMIT from its producer group; no check-back before it is on record")
    assert len(told) == 2


def test_each_check_back_is_told_with_whom_and_with_its_answer(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    order(rocketmq, UNKNOWN, UNKNOWN, COMMIT)
    rocketmq.advance(minutes=3)
    row, told = story(admin)
    asked = [what for what in told if what.startswith("check-back")]
    assert [what.partition(":")[0] for what in asked] == ["check-back 1", "check-back 2"]
    address = asked[0].rpartition(" ")[2]
    assert told.index(f"the producer at {address} answers UNKNOWN") < told.index(f"the producer at {address} answers COMMIT")
    assert any(what.startswith("COMMIT, the answer to a check-back: message visible") for what in told)
    times = [event["atMs"] for event in row["events"] if event["atMs"] is not None]
    assert times == sorted(times)
    assert {event["onRecord"] for event in row["events"]} == {"commit log", "broker's memory", "not on record"}
    assert "check-back 2" in admin.said("timeline", "order-1")


def test_what_a_restart_forgot_is_said_to_be_not_on_record(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    order(rocketmq, UNKNOWN, UNKNOWN, COMMIT)
    rocketmq.advance(minutes=3)
    rocketmq.crash()
    rocketmq.restart()
    row, told = story(admin)
    (forgotten,) = [event for event in row["events"] if "check-backs: times, producers and answers" in event["what"]]
    assert forgotten["onRecord"] == "not on record"
    assert any(
        what.startswith("COMMIT, from its producer group after a check-back; which client sent it is not") for what in told
    )


def test_a_rollback_in_answer_to_a_check_back_has_its_time(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    order(rocketmq, UNKNOWN, ROLLBACK)
    rocketmq.advance(minutes=2)
    row, told = story(admin)
    assert row["state"] == "rolled back"
    assert told[-1] == "ROLLBACK, the answer to a check-back: no consumer will see the message"
    assert row["events"][-1]["atMs"] is not None


@pytest.mark.parametrize("answers", [(ROLLBACK,), (UNKNOWN, UNKNOWN, ROLLBACK)], ids=["at once", "at a check-back"])
def test_a_rollback_has_its_time_after_a_restart_too(
    answers: tuple[LocalTransactionState, ...], rocketmq: SyncRocketMQ, admin: CommandLine
) -> None:
    order(rocketmq, *answers)
    rocketmq.advance(minutes=3)
    before = story(admin)[0]["events"][-1]["atMs"]
    for number in range(3):
        producer = rocketmq.transaction_producer("others", InTurn(COMMIT))
        producer.send_message_in_transaction(Message.of("orders", b"paid", keys=[f"other-{number}"]))
    rocketmq.crash()
    rocketmq.restart()
    last = story(admin)[0]["events"][-1]
    assert last["what"].endswith("no consumer will see the message")
    assert (last["atMs"], last["onRecord"]) == (before, "commit log")


def test_a_pending_transaction_and_one_decided_by_hand_are_told(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    order(rocketmq, UNKNOWN)
    assert story(admin)[1][-1] == "pending: no decision yet"
    (transaction,) = rocketmq.pending()
    admin.said("decide", transaction.transaction_id or "", "--commit", "--reason", "paid in cash")
    assert any(what.startswith("COMMIT by hand (paid in cash): message visible") for what in story(admin)[1])


class TestWithOneCheck:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckMax": 1}

    def test_a_discard_is_told(self, rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
        order(rocketmq, UNKNOWN, UNKNOWN)
        rocketmq.advance(minutes=5)
        row, told = story(admin)
        assert row["state"] == "discarded"
        assert told[-1] == "discarded after 1 check-back: rocketmq-admin resume resumes its check-backs"


def test_deliveries_redeliveries_and_the_dead_letter_are_told_by_group(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    rocketmq.producer("makers").create_topic("orders", 1)
    failing = rocketmq.consumer("credits", "orders", Consumption(failures=2), max_reconsume_times=1)
    succeeding = rocketmq.consumer("mails", "orders", Consumption())
    order(rocketmq, COMMIT)
    rocketmq.advance(minutes=2)
    failing.shutdown()
    succeeding.shutdown()
    told = story(admin)[1]
    assert sum(what.startswith("delivered to") for what in told) == 2
    assert "redelivery 1 to credits: the attempt before failed" in told
    assert any(what.startswith("dead letter of credits, after ") for what in told)
    assert not any("mails" in what and what.startswith("redelivery") for what in told)


def test_a_key_without_a_transaction_is_refused(admin: CommandLine) -> None:
    said = admin.refused("timeline", "order-9")
    assert said == "transaction not found: order-9; run rocketmq-admin message order-9 to find any message\n"
