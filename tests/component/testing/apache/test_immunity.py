"""Tests that Apache's broker counts the checks of a message that is immune to checks."""

import asyncio
from collections.abc import Mapping

import pytest

from rocketmq_broker.client import LocalTransactionState, Message
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.testing import RocketMQ
from rocketmq_broker.testing.apache.immunity import Immunity, find_immunity, scans_until_check, with_check_interval
from tests.unit.testing.listeners import COMMIT, UNKNOWN, Transactions, order, send_in_transaction

NAME = props.CHECK_IMMUNITY_TIME_IN_SECONDS


class Slow(Transactions):
    """A transaction listener whose local transaction takes `seconds`."""

    def __init__(self, seconds: float, executed: LocalTransactionState = COMMIT) -> None:
        super().__init__(executed)
        self.seconds = seconds

    async def execute_local_transaction(  # type: ignore[override]
        self, message: Message, arg: object
    ) -> LocalTransactionState:
        await asyncio.sleep(self.seconds)
        return self.executed


def immune_order(seconds: object) -> Message:
    return order(user_properties={NAME: str(seconds)})


@pytest.mark.parametrize(("text", "expected"), [("30", 30), ("0", 0), ("-1", None), ("soon", None), ("1.5", None)])
def test_an_immunity_is_a_whole_number_of_seconds(text: str, expected: int | None) -> None:
    found = find_immunity(props.encode({NAME: text}), 7.0)
    assert found == (None if expected is None else Immunity(7.0, expected))


def test_a_message_without_the_property_has_no_immunity() -> None:
    assert find_immunity(props.encode({"KEYS": "order-1"}), 7.0) is None


def test_an_immunity_ends_after_its_seconds() -> None:
    immunity = Immunity(begun_s=10, seconds=5)
    assert immunity.covers(14.9)
    assert not immunity.covers(15)


@pytest.mark.parametrize(
    ("interval_s", "expected"),
    [(60.0, "60"), (2.0, "2"), (2.9, "2"), (0.5, "1")],
    ids=["minute", "2 s", "2.9 s", "half a second"],
)
def test_the_broker_looks_at_each_interval_and_the_other_properties_stay(interval_s: float, expected: str) -> None:
    encoded = with_check_interval(interval_s, props.encode({"KEYS": "order-1", NAME: "1800", "color": "red"}))
    assert props.decode(encoded) == {"KEYS": "order-1", NAME: expected, "color": "red"}


@pytest.mark.parametrize(("first_scan_s", "looks"), [(2.0, 2), (4.0, 1), (5.0, 0), (6.0, 0)])
def test_an_immune_message_is_asked_about_at_the_first_look_after_its_immunity(first_scan_s: float, looks: int) -> None:
    assert scans_until_check(Immunity(begun_s=0, seconds=5), first_scan_s, interval_s=2.0) == looks


def test_a_message_that_is_not_immune_is_asked_about_at_once() -> None:
    assert scans_until_check(None, 1.0, interval_s=2.0) == 0


class TestLookedAtEveryTwoSeconds:
    @pytest.fixture
    def rocketmq_settings(self) -> Mapping[str, object]:
        return {"transactionCheckInterval": 2000, "transactionCheckMax": 3}

    async def test_it_is_asked_about_once_the_immunity_is_over(self, rocketmq: RocketMQ) -> None:
        listener = Transactions(UNKNOWN, COMMIT)
        await send_in_transaction(rocketmq, listener, immune_order(10))
        await rocketmq.advance(seconds=11)
        await rocketmq.committed("order-1")

    async def test_with_apache_its_checks_are_used_up_and_nobody_is_asked(self, rocketmq: RocketMQ) -> None:
        rocketmq.as_apache()
        listener = Transactions(UNKNOWN, COMMIT)
        await send_in_transaction(rocketmq, listener, immune_order(10))
        await rocketmq.advance(seconds=7)
        assert [one.checks for one in await rocketmq.pending()] == [3]
        await rocketmq.advance(seconds=2)
        assert listener.checks == 0
        assert [one.keys for one in await rocketmq.messages(topics.CHECK_MAX_TIME_TOPIC)] == [("order-1",)]
        assert "used up while the message is immune" in rocketmq.timeline("order-1")

    async def test_an_immunity_that_ends_before_the_checks_do_leaves_some(self, rocketmq: RocketMQ) -> None:
        rocketmq.as_apache()
        listener = Transactions(UNKNOWN, COMMIT)
        await send_in_transaction(rocketmq, listener, immune_order(5))
        await rocketmq.advance(seconds=7)
        assert listener.checks == 1
        await rocketmq.committed("order-1")

    @pytest.mark.parametrize(("is_like_apache", "deliveries"), [(False, 1), (True, 2)])
    async def test_a_commit_during_the_immunity_delivers_twice_only_as_with_apache(
        self, rocketmq: RocketMQ, is_like_apache: bool, deliveries: int
    ) -> None:
        if is_like_apache:
            rocketmq.as_apache()
        listener = Slow(3)
        await send_in_transaction(rocketmq, listener, immune_order(5))
        await rocketmq.advance(minutes=1)
        assert len(await rocketmq.messages("orders")) == deliveries
        assert listener.checks == deliveries - 1

    async def test_a_commit_before_the_first_look_delivers_once(self, rocketmq: RocketMQ) -> None:
        rocketmq.as_apache()
        await send_in_transaction(rocketmq, Slow(1), immune_order(5))
        await rocketmq.advance(minutes=1)
        assert len(await rocketmq.messages("orders")) == 1


async def test_with_apache_an_immunity_of_half_an_hour_uses_up_all_checks_at_the_default_settings(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache()
    listener = Transactions(UNKNOWN, COMMIT)
    await send_in_transaction(rocketmq, listener, immune_order(1800))
    await rocketmq.advance(minutes=17)
    assert listener.checks == 0
    assert [one.state for one in await rocketmq.decided()] == ["discarded"]
