"""Tests heartbeats: their receivers, the brokers reported as unreachable, and the request by which a client leaves."""

import logging
from collections.abc import Mapping
from typing import cast

import pytest

from rocketmq_broker.client.instance.heartbeats import Heartbeats
from rocketmq_broker.client.instance.routes import Routes
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.group import UnregisterClientRequestHeader
from rocketmq_broker.remoting.errors import ConnectionClosed
from tests.unit.client.peers import Peers, answer, success
from tests.waiting import until

PRODUCER = HeartbeatData(client_id="c", producer_data_set=[ProducerData(group_name="p")])
BOTH = HeartbeatData(
    client_id="c",
    producer_data_set=[ProducerData(group_name="p")],
    consumer_data_set=[ConsumerData(group_name="g")],
)


class Known:
    """A route table with fixed brokers."""

    def __init__(self, brokers: Mapping[str, Mapping[int, str]]) -> None:
        self.brokers = brokers
        self.refreshed = 0

    def refresh_soon(self) -> None:
        self.refreshed += 1


MASTER_AND_SLAVE = {"x": {0: "x:1", 1: "slave:1"}}


def heartbeats(
    peers: Peers, membership: HeartbeatData = PRODUCER, brokers: Mapping[str, Mapping[int, str]] = MASTER_AND_SLAVE
) -> tuple[Heartbeats, Known]:
    known = Known(brokers)
    return Heartbeats(peers.as_remoting(), cast(Routes, known), lambda: membership), known


async def test_a_producer_is_known_to_masters_and_a_consumer_to_slaves_too() -> None:
    for membership, expected in ((PRODUCER, {"x:1"}), (BOTH, {"x:1", "slave:1"})):
        peers = Peers(x=lambda request: success(), slave=lambda request: success())
        beating, _ = heartbeats(peers, membership)
        assert await beating.send()
        assert {asked.address for asked in peers.asked} == expected
        assert HeartbeatData.decode(peers.asked[0].command.body) == membership


async def test_while_no_broker_is_known_nobody_has_heard() -> None:
    beating, _ = heartbeats(Peers(), brokers={})
    assert not await beating.send()


async def test_one_that_is_away_is_named_once_and_so_is_its_return(caplog: pytest.LogCaptureFixture) -> None:
    peers = Peers()
    beating, known = heartbeats(peers)
    with caplog.at_level(logging.INFO):
        assert not await beating.send()
        assert not await beating.send()
        peers.by_address["x:1"] = lambda request: success()
        assert await beating.send()
        assert await beating.send()
    away, back = (record.getMessage() for record in caplog.records)
    assert away.startswith("broker x:1 is unreachable (HEART_BEAT: no connection to x:1")
    assert back == "broker x:1 is reachable again"
    assert known.refreshed == 2


async def test_a_refusal_is_no_absence(caplog: pytest.LogCaptureFixture) -> None:
    beating, _ = heartbeats(Peers(x=lambda request: answer(ResponseCode.SYSTEM_ERROR, remark="no such account")))
    assert not await beating.send()
    assert "broker x:1 refused the heartbeat (broker x:1 answered code 1: no such account)" in caplog.text


async def test_each_group_takes_leave_of_each_broker() -> None:
    peers = Peers(x=lambda request: success(), slave=lambda request: success())
    beating, _ = heartbeats(peers, BOTH)
    await beating.unregister()
    left = {
        (asked.address, header.client_id, header.producer_group, header.consumer_group)
        for asked in peers.asked
        for header in [asked.command.decode_header(UnregisterClientRequestHeader)]
    }
    assert left == {(address, "c", *groups) for address in ("x:1", "slave:1") for groups in (("p", None), (None, "g"))}


async def test_brokers_that_are_away_are_not_waited_for_at_the_departure() -> None:
    peers = Peers(slave=lambda request: success())
    beating, _ = heartbeats(peers, BOTH)
    await beating.send()
    peers.asked.clear()
    await beating.unregister()
    assert {asked.address for asked in peers.asked} == {"slave:1"}


async def test_a_departure_that_nobody_hears_is_no_error() -> None:
    beating, _ = heartbeats(Peers(x=lambda request: ConnectionClosed("gone")))
    await beating.unregister()


async def test_in_the_background_a_heartbeat_is_sent_as_soon_as_something_changes() -> None:
    peers = Peers(x=lambda request: success())
    beating, _ = heartbeats(peers)
    beating.start()
    await until(lambda: len(peers.asked) == 1)
    beating.send_soon()
    await until(lambda: len(peers.asked) == 2)
    await beating.stop()
    assert peers.codes == [RequestCode.HEART_BEAT] * 2


async def test_what_a_broker_remarks_is_logged_once_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    remarks: list[str | None] = ["the members differ", "the members differ", None, "the members differ"]
    peers = Peers(x=lambda request: answer(ResponseCode.SUCCESS, remark=remarks.pop(0)))
    beating, _ = heartbeats(peers)
    for _ in range(4):
        assert await beating.send()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["broker x:1 reports: the members differ"] * 2
