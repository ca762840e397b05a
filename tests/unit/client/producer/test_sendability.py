"""Tests the check whether messages can be sent now, which sends no message."""

from typing import cast

import pytest

from rocketmq_broker.client import NoRoute
from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.client.producer.sendability import LatestSends, Sendability
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.errors import RemotingTimeout
from tests.unit.client.peers import Peer, Peers, Places, answer, success


class Published(Places):
    """Routes of a topic that is on the given brokers."""

    def __init__(self, *brokers: str) -> None:
        self.brokers = brokers

    async def queues_to_publish(self, topic: str) -> list[MessageQueue]:
        if not self.brokers:
            raise NoRoute("no broker accepts messages for topic orders")
        return [MessageQueue(topic, name, queue_id) for name in self.brokers for queue_id in (0, 1)]


def saying(settings: str = "", **figures: str) -> Peer:
    """Returns a broker that responds with these settings and these runtime figures."""

    def says(request: RemotingCommand) -> bytes:
        if request.code == RequestCode.GET_BROKER_CONFIG:
            return success(body=settings.encode())
        return success(body=KVTable(table=figures).encode())

    return says


async def why(latest: LatestSends | None = None, **peers: Peer) -> tuple[str | None, Peers]:
    """Returns the reason why no message can be sent to `orders` on these brokers, and the brokers with their requests."""
    asked = Peers(**peers)
    calls = BrokerCalls(asked.as_remoting(), cast(Routes, Published(*peers)))
    return await Sendability(calls, latest or LatestSends()).why_unsendable("orders"), asked


async def test_a_broker_that_says_nothing_against_it_would_store_a_message() -> None:
    reason, asked = await why(a=saying(commitLogDiskRatio="0.5"))
    assert reason is None
    assert asked.codes == [RequestCode.GET_BROKER_RUNTIME_INFO]


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        ({"a": saying(putMessageRefusal="the disk is 97% full")}, "broker a stores nothing: the disk is 97% full"),
        ({"a": saying(commitLogDiskRatio="0.93")}, "broker a stores nothing: its disk is 93 % full"),
        ({"a": saying("diskSpaceWarningLevelRatio=97\n", commitLogDiskRatio="0.93")}, None),
        ({"a": lambda request: RemotingTimeout("a:1"), "b": saying(commitLogDiskRatio="0.5")}, None),
        ({}, "no broker accepts messages for topic orders"),
    ],
    ids=["refusing", "a full disk of Apache's broker", "a disk that may fill further", "one of two is enough", "no broker"],
)
async def test_messages_can_be_sent_if_one_broker_would_store_them(brokers: dict[str, Peer], expected: str | None) -> None:
    assert (await why(**brokers))[0] == expected


async def test_brokers_that_all_fail_are_all_told() -> None:
    reason, _ = await why(
        a=lambda request: RemotingTimeout("a:1"), b=lambda request: answer(ResponseCode.SYSTEM_BUSY, remark="x")
    )
    assert reason is not None
    assert "a:1 did not answer GET_BROKER_RUNTIME_INFO within 1000 ms; " in reason
    assert "b:1" in reason


async def test_an_answer_that_makes_no_sense_is_a_reason() -> None:
    reason, _ = await why(a=lambda request: success(body=b"<html>"))
    assert reason is not None
    assert "cannot be decoded" in reason


async def test_who_has_just_stored_a_message_asks_nobody() -> None:
    class Now(LatestSends):
        def is_stored_just_now(self, now_s: float) -> bool:
            return True

    reason, asked = await why(Now(), a=saying(putMessageRefusal="the disk is 97% full"))
    assert (reason, asked.asked) == (None, [])


def test_three_sends_in_a_row_that_were_refused_are_a_reason_for_ten_seconds() -> None:
    latest = LatestSends()
    for second in (1, 2):
        latest.failed("half messages are refused", second)
    assert latest.why_failed(2) is None
    latest.failed("half messages are refused", 3)
    assert latest.why_failed(12) == "half messages are refused"
    assert latest.why_failed(13) is None


def test_a_message_that_was_stored_counts_more_than_those_that_failed_before() -> None:
    latest = LatestSends()
    for second in (1, 2, 3):
        latest.failed("away", second)
    latest.stored(4)
    assert latest.why_failed(4) is None
    assert latest.is_stored_just_now(4.9)
    assert not latest.is_stored_just_now(5.1)
    latest.failed("away", 6)
    assert latest.why_failed(6) is None
