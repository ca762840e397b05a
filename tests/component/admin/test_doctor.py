"""Tests of the doctor's findings and advice."""

from collections.abc import Mapping

import pytest
from typer.testing import CliRunner

from rocketmq_broker import __version__
from rocketmq_broker.admin.__main__ import app
from rocketmq_broker.admin.broker_requests.brokers import BrokerAddress
from rocketmq_broker.admin.health import commands
from rocketmq_broker.admin.health.reach import announced, is_loopback
from rocketmq_broker.client import Message
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.command_line import CommandLine
from tests.unit.testing.listeners import UNKNOWN, Consumption, Transactions, to_dead_letters


@pytest.fixture
def admin(rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Returns a command line that uses the broker's clock, so that findings do not depend on the duration of the test."""
    monkeypatch.setattr(commands, "now_ms", lambda: rocketmq._time.wall_ns() // 1_000_000)
    return CommandLine(rocketmq)


def test_all_is_well(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    said = admin.said("doctor")
    assert said.endswith("No problems found.\n")
    assert "It speaks" not in said
    assert "V4_9_7" in said
    assert f"rocketmq-admin {__version__}, Python 3." in said
    assert "Its clock agrees with this machine's." in said
    assert "No client is connected." in said
    assert "Its disk is" in said
    rows = admin.rows("doctor")
    assert not any(finding["isWrong"] for finding in rows)
    versions = {finding["subject"].split()[0]: finding["facts"]["version"] for finding in rows if "version" in finding["facts"]}
    assert versions == {"this": "4.9.7", "name": "4.9.7", "broker": "4.9.7"}
    assert [finding["facts"]["clockDifferenceMs"] for finding in rows if "clockDifferenceMs" in finding["facts"]] == [0]


def test_the_versions_of_connected_clients_are_told(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    producer = rocketmq.producer("shops")
    producer.create_topic("orders")
    rocketmq.consumer("credits", "orders", Consumption())
    rocketmq.advance(seconds=31)
    assert "Its clients are 2 of 4.9.7." in admin.said("doctor")


def test_a_clock_that_shows_another_time_is_wrong(
    rocketmq: SyncRocketMQ, admin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    here_ms = commands.now_ms
    monkeypatch.setattr(commands, "now_ms", lambda: here_ms() + 60_000)
    said = admin.stdout_of_failure("doctor")
    assert "WRONG  Its clock is 59 s behind this machine's." in said
    assert "Synchronize both machines with the same time server" in said


def test_settings_of_tls_that_do_nothing_are_wrong(admin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETMQ_TLS_TRUST_CERT_PATH", "/ca.pem")
    said = admin.stdout_of_failure("doctor")
    assert "ROCKETMQ_TLS_TRUST_CERT_PATH is set without ROCKETMQ_TLS_ENABLE=true: this tool does not use TLS." in said


def test_a_name_server_that_nobody_runs_is_wrong() -> None:
    result = CliRunner().invoke(app, ["-n", "127.0.0.1:9", "doctor"])
    assert result.exit_code == 1
    assert "WRONG  no name server answers at 127.0.0.1:9" in result.stdout
    assert "Start a name server at 127.0.0.1:9" in result.stdout
    assert result.stdout.endswith("1 problem found.\n")


def test_an_address_that_is_none_is_a_wrong_command_line() -> None:
    assert CliRunner().invoke(app, ["-n", "here", "doctor"]).exit_code == 2


def test_a_broker_that_cannot_be_reached_is_wrong() -> None:
    result = CliRunner().invoke(app, ["-b", "127.0.0.1:9", "doctor"])
    assert result.exit_code == 1
    assert "It cannot be reached at the address that it announces" in result.stdout
    assert "brokerIP1" in result.stdout


def test_a_broker_elsewhere_that_announces_a_loopback_address_is_wrong() -> None:
    found = announced("broker", BrokerAddress("broker-a", "127.0.0.1:10911"), is_remote=True)
    assert [finding.what_to_do for finding in found] == [
        "Set brokerIP1 to an address of its machine that clients can reach, and bindAddress=0.0.0.0."
    ]


def test_a_full_disk_is_wrong(rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
    rocketmq.fill_disk()
    said = admin.stdout_of_failure("doctor")
    assert "it refuses new messages" in said
    assert "Free space" in said


class TestRefusingByItsSettings:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"rejectTransactionMessage": "true", "brokerPermission": 4}

    def test_is_wrong(self, admin: CommandLine) -> None:
        said = admin.stdout_of_failure("doctor")
        assert "It refuses half messages (rejectTransactionMessage=true)" in said
        assert "It refuses all messages (brokerPermission=4)" in said


class TestWhatWaitsForAPerson:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckMax": 1}

    def test_is_wrong_with_the_command_that_treats_it(self, rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
        producer = rocketmq.transaction_producer("shops", Transactions(UNKNOWN, UNKNOWN))
        producer.send_message_in_transaction(Message.of("orders", b"kept", keys=["order-1"]))
        assert "It has 1 pending transaction." in admin.said("doctor")
        producer.shutdown()
        assert "It has 1 pending transaction." in admin.said("doctor")
        rocketmq.advance(minutes=2)
        assert "no producer of shops is online" in admin.stdout_of_failure("doctor")

        again = rocketmq.transaction_producer("shops", Transactions(UNKNOWN, UNKNOWN))
        rocketmq.advance(minutes=5)
        said = admin.stdout_of_failure("doctor")
        assert "1 discarded message of shops need an operator" in said
        assert "rocketmq-admin discarded" in said
        again.shutdown()

    def test_dead_letters_are_wrong(self, rocketmq: SyncRocketMQ, admin: CommandLine) -> None:
        producer = rocketmq.producer("shops")
        producer.create_topic("orders", 1)
        rocketmq.consumer("credits", "orders", to_dead_letters)
        producer.send(Message.of("orders", b"bad"))
        rocketmq.advance(seconds=40)
        said = admin.stdout_of_failure("doctor")
        assert "1 dead letter of credits need an operator" in said
        assert "rocketmq-admin dead-letters list" in said


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:1", True), ("[::1]:1", True), ("localhost:1", True), ("10.0.0.1:1", False), ("broker:1", False)],
)
def test_which_addresses_are_the_machines_own(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


def test_members_of_a_group_that_subscribe_to_different_topics_are_named(
    rocketmq: SyncRocketMQ, admin: CommandLine, caplog: pytest.LogCaptureFixture
) -> None:
    producer = rocketmq.producer("shops")
    for topic in ("orders", "refunds"):
        producer.create_topic(topic)
        rocketmq.consumer("credits", topic, Consumption(), instance_name=topic)
    rocketmq.advance(seconds=31)
    for said in (admin.stdout_of_failure("doctor"), admin.said("groups")):
        assert "members of the consumer group credits subscribe to different messages" in said
        assert "Give all members of the group the same subscriptions, or each program its own group." in said
    (row,) = (row for row in admin.rows("groups", "--all") if row["group"] == "credits")
    assert "to refunds (*)" in row["disagreement"]
    assert "to orders (*)" in row["disagreement"]
    loggers = {record.name for record in caplog.records if "subscribe to different messages" in record.getMessage()}
    assert loggers == {"rocketmq_broker.server.clients.consumer_groups", "rocketmq_broker.client.instance.heartbeats"}
