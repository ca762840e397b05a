"""Tests of the commands that show and repair transactions and dead letters."""

from collections.abc import Mapping

import pytest

from rocketmq_broker.client import Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.command_line import CommandLine
from tests.unit.testing.listeners import UNKNOWN, Consumption, Transactions, to_dead_letters


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    """Returns a long transaction timeout, so that no check-back is sent while a command runs."""
    return {"transactionTimeOut": 3_600_000}


def begin(rocketmq: SyncRocketMQ, *keys: str, group: str = "shops", topic: str = "orders") -> list[str]:
    """Starts transactions that remain undecided, and returns their ids."""
    producer = rocketmq.transaction_producer(group, Transactions(UNKNOWN, UNKNOWN))
    sent = [producer.send_message_in_transaction(Message.of(topic, "paid", keys=[key], tags="new")) for key in keys]
    rocketmq.advance(seconds=31)  # with their next heartbeat producers are online
    return [one.transaction_id for one in sent]


class TestPending:
    def test_nothing_is_pending_at_first(self, admin: CommandLine) -> None:
        assert admin.said("pending") == "no pending transactions\n"
        assert admin.rows("pending") == []

    def test_the_oldest_come_first_with_what_one_must_know(self, rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
        (first, second) = begin(rocketmq, "order-1", "order-2")
        said = admin.said("pending")
        assert said.index(first) < said.index(second)
        for words in ("0 of 15", "shops", "orders", "order-1", "yes", " in "):
            assert words in said
        assert said.endswith("2 of 2 pending transactions\n")

    def test_they_are_chosen_by_topic_group_and_age(self, rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
        begin(rocketmq, "order-1")
        rocketmq.advance(minutes=2)
        begin(rocketmq, "mail-1", group="mailers", topic="mails")
        assert [row["keys"] for row in admin.rows("pending", "--topic", "mails")] == [["mail-1"]]
        assert [row["keys"] for row in admin.rows("pending", "--group", "shops")] == [["order-1"]]
        assert [row["keys"] for row in admin.rows("pending", "--older-than", "1m")] == [["order-1"]]
        assert admin.said("pending", "--topic", "elsewhere") == "no pending transactions\n"

    def test_a_page_says_how_to_get_the_next_one(self, rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
        begin(rocketmq, "order-1", "order-2", "order-3")
        said = admin.said("pending", "--limit", "2")
        assert "2 of 3 pending transactions" in said
        after = said.rpartition("--after ")[2].strip()
        assert f"next page: pending --broker-addr {rocketmq.broker_addr} --after {after}" in said
        assert [row["keys"] for row in admin.rows("pending", "--after", after)] == [["order-3"]]


class TestShowAndDecide:
    def test_a_transaction_is_shown_by_its_id_its_key_and_its_half_offset(
        self, rocketmq: SyncRocketMQ, admin: CommandLine
    ) -> None:
        (transaction_id,) = begin(rocketmq, "order-1")
        (row,) = admin.rows("show", transaction_id)
        assert transaction_id in admin.said("show", str(row["halfOffset"]))
        said = admin.said("show", "order-1")
        for words in ("pending", transaction_id, "shops (online)", "orders, queue", "order-1", "new", "4 bytes", "0 of 15"):
            assert words in said

    @pytest.mark.parametrize(("option", "state", "messages"), [("--commit", "committed", 1), ("--rollback", "rolled back", 0)])
    def test_a_decision_by_hand_is_told_kept_with_its_reason_and_carried_out(
        self, rocketmq: SyncRocketMQ, admin: CommandLine, option: str, state: str, messages: int
    ) -> None:
        (transaction_id,) = begin(rocketmq, "order-1")
        said = admin.said("decide", transaction_id, option, "--reason", "the customer called")
        assert said.startswith(
            f"{state}: the transaction at half offset 0 of shops (topic orders, broker {rocketmq.broker_addr})"
        )
        assert said.endswith("; reason: the customer called\n")
        assert len(rocketmq.messages("orders")) == messages
        assert "the customer called" in admin.said("decided")
        assert [(row["state"], row["reason"]) for row in admin.rows("decided")] == [(state, "the customer called")]
        assert admin.rows("decided", "--before", "1h") == []
        assert transaction_id in admin.refused("decide", transaction_id, option, "--reason", "again")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--reason", "why"], "give exactly one of"),
            (["--commit", "--rollback", "--reason", "why"], "give exactly one of"),
            (["--commit", "--reason", "  "], "must not be empty"),
        ],
    )
    def test_an_unclear_decision_is_no_decision(
        self, rocketmq: SyncRocketMQ, admin: CommandLine, options: list[str], words: str
    ) -> None:
        (transaction_id,) = begin(rocketmq, "order-1")
        assert words in admin.refused("decide", transaction_id, *options, exit_code=2)
        assert len(rocketmq.pending()) == 1

    @pytest.mark.parametrize("command", [["show", "order-9"], ["decide", "order-9", "--commit", "--reason", "why"]])
    def test_an_unknown_transaction_is_named(self, admin: CommandLine, command: list[str]) -> None:
        assert "order-9" in admin.refused(*command)

    def test_nothing_was_decided_by_hand_at_first(self, admin: CommandLine) -> None:
        assert admin.said("decided") == "no transactions decided by hand\n"


class TestDiscarded:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckMax": 1, "transactionTimeOut": 6_000}

    def test_a_discarded_message_is_listed_and_brought_back(self, rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
        assert admin.said("discarded") == "no discarded messages\n"
        (transaction_id,) = begin(rocketmq, "order-1")
        rocketmq.advance(minutes=3)
        assert all(word in admin.said("discarded") for word in ("order-1", transaction_id, "shops", "orders", " ago"))
        assert admin.rows("discarded", "--topic", "elsewhere") == admin.rows("discarded", "--group", "elsewhere") == []
        said = admin.said("resume", transaction_id)
        assert said.endswith(f"is pending again at broker {rocketmq.broker_addr}, its count of check-backs is 0\n")
        assert "resumed" in admin.said("discarded")
        assert [one.keys for one in rocketmq.pending()] == [("order-1",)]


class TestDeadLetters:
    @pytest.fixture
    def letter(self, rocketmq: SyncRocketMQ) -> str:
        """Creates a message that the group `credits` could not consume, and returns its id."""
        producer = rocketmq.producer("shops")
        producer.create_topic("orders", 1)
        consumer = rocketmq.consumer("credits", "orders", to_dead_letters)
        message_id: str = producer.send(Message.of("orders", "bad", keys=["order-1"])).message_id
        rocketmq.advance(seconds=40)
        consumer.shutdown()
        return message_id

    def test_groups_are_listed_and_then_their_letters(self, admin: CommandLine, letter: str) -> None:
        assert "credits" in admin.said("dead-letters", "list")
        said = admin.said("dead-letters", "list", "credits")
        assert letter in said
        assert "order-1" in said
        assert admin.said("dead-letters", "list", "mails") == "no untreated dead letters of mails\n"
        assert admin.rows("dead-letters", "list", "credits", "--older-than", "1h") == []

    def test_a_letter_is_shown_with_its_body(self, admin: CommandLine, letter: str) -> None:
        said = admin.said("dead-letters", "show", "order-1")
        assert letter in said
        assert "bad" in said
        assert [row["body"] for row in admin.rows("dead-letters", "show", letter, "--group", "credits")] == ["bad"]

    def test_a_retry_reaches_the_group_once_more(self, rocketmq: SyncRocketMQ, admin: CommandLine, letter: str) -> None:
        consumption = Consumption()
        rocketmq.consumer("credits", "orders", consumption)
        said = admin.said("dead-letters", "retry", letter, "--reason", "mended")
        assert said.startswith("retried: ")
        assert "is delivered to the consumer group credits once more (retry 1, broker " in said
        rocketmq.advance(minutes=1)
        assert consumption.bodies == [b"bad"]
        assert admin.said("dead-letters", "list", "credits") == "no untreated dead letters of credits\n"
        assert letter in admin.said("dead-letters", "list", "credits", "--treated")

    def test_a_dry_run_says_what_would_come_back_and_changes_nothing(self, admin: CommandLine, letter: str) -> None:
        said = admin.said("dead-letters", "retry", "--group", "credits", "--all", "--dry-run")
        assert said.startswith("dry run, not retried: ")
        assert "would be delivered to the consumer group credits once more (retry 1)\n" in said
        assert said.endswith("1 dead letters would be retried; nothing was changed\n")
        assert len(admin.rows("dead-letters", "list", "credits")) == 1
        assert admin.said("dead-letters", "retry", "--group", "credits", "--all").startswith("retried: ")
        assert "was already retried" in admin.refused("dead-letters", "retry", letter, "--dry-run")

    def test_all_letters_of_a_group_are_dismissed_with_a_reason(self, admin: CommandLine, letter: str) -> None:
        said = admin.said("dead-letters", "dismiss", "--group", "credits", "--all", "--reason", "a test order")
        assert said.startswith("dismissed: ")
        assert said.endswith("of the consumer group credits; reason: a test order\n")
        again = admin.said("dead-letters", "dismiss", "--group", "credits", "--all", "--reason", "a test order")
        assert again == "no untreated dead letters of credits\n"

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["retry"], "give a message, or --group GROUP --all"),
            (["retry", "--all"], "--all requires --group, and cannot be combined with messages"),
            (["retry", "order-1", "--group", "credits", "--all"], "--all requires --group, and cannot be combined with messages"),
            (["dismiss", "order-1", "--reason", " "], "must not be empty"),
        ],
    )
    def test_an_unclear_choice_changes_nothing(self, admin: CommandLine, letter: str, options: list[str], words: str) -> None:
        assert words in " ".join(admin.refused("dead-letters", *options, exit_code=2).replace("│", " ").split())
        assert len(admin.rows("dead-letters", "list", "credits")) == 1
