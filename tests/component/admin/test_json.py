"""Tests that each command can print JSON, including commands that make changes."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rocketmq_broker.admin.__main__ import app
from rocketmq_broker.client import Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.command_line import CommandLine
from tests.unit.testing.listeners import UNKNOWN, Transactions, to_dead_letters


def commands(group: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Yields all Typer commands with their full names, such as "group command"."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
        else:
            yield " ".join([*names, name]), command


PRINTS_NO_FINDINGS = "console"
"""It serves pages until it is stopped."""
COMMANDS = dict(commands(typer.main.get_command(app)))


def test_all_commands_are_looked_at() -> None:
    assert {"doctor", "decide", "resume", "dead-letters retry", "dead-letters dismiss", "tail"} <= COMMANDS.keys()
    assert len(COMMANDS) > 15


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {PRINTS_NO_FINDINGS}))
def test_a_command_has_the_option_json(name: str) -> None:
    assert any("--json" in parameter.opts for parameter in COMMANDS[name].params)


def send_undecided(rocketmq: SyncRocketMQ, *keys: str) -> None:
    producer = rocketmq.transaction_producer("shops", Transactions(UNKNOWN, UNKNOWN))
    for key in keys:
        producer.send_message_in_transaction(Message.of("orders", "kept", keys=[key]))


def test_a_decision_is_printed_as_the_transaction_that_it_ends(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    send_undecided(rocketmq, "order-1")
    (pending,) = admin.rows("pending")
    (decided,) = admin.rows("decide", pending["transactionId"], "--commit", "--reason", "the customer paid")
    for name in ("broker", "halfOffset", "transactionId"):
        assert decided[name] == pending[name]
    assert decided["broker"] == rocketmq.broker_addr
    assert (decided["state"], decided["reason"]) == ("committed", "the customer paid")


class TestAfterOneCheck:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckMax": 1}

    def test_what_is_resumed_is_printed(self, rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
        send_undecided(rocketmq, "order-1")
        rocketmq.advance(minutes=3)
        (discarded,) = admin.rows("discarded")
        (resumed,) = admin.rows("resume", discarded["transactionId"])
        assert resumed == {**discarded, "isResumed": True}


def test_dead_letters_that_are_treated_are_printed_with_their_treatment(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    producer = rocketmq.producer("shops")
    producer.create_topic("orders", 1)
    rocketmq.consumer("credits", "orders", to_dead_letters)
    for key in ("order-1", "order-2"):
        producer.send(Message.of("orders", "bad", keys=[key]))
    rocketmq.advance(seconds=40)

    (retried,) = admin.rows("dead-letters", "retry", "order-1", "--reason", "mended")
    assert (retried["consumerGroup"], retried["keys"], retried["treatment"]["treatment"]) == ("credits", ["order-1"], "retried")
    (dismissed,) = admin.rows("dead-letters", "dismiss", "order-2", "--reason", "a test order")
    assert (dismissed["treatment"]["treatment"], dismissed["treatment"]["reason"]) == ("dismissed", "a test order")


def test_nothing_to_treat_is_an_empty_array(admin: CommandLine) -> None:
    assert admin.rows("dead-letters", "retry", "--group", "credits", "--all") == []


def test_what_failed_is_told_apart_from_what_was_treated(rocketmq: SyncRocketMQ) -> None:
    command = ["--namesrv-addr", rocketmq.namesrv_addr, "dead-letters", "retry", "nobody", "--json"]
    result = CliRunner().invoke(app, command)
    assert "dead letter not found: nobody" in result.stderr
    assert (result.exit_code, json.loads(result.stdout)) == (1, [])
