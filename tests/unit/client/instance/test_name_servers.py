"""Tests requests to name servers.

One response is enough. If no name server responds, the error contains advice.
"""

import pytest

from rocketmq_broker.client import NameServerUnreachable, UnreadableAnswer
from rocketmq_broker.client.instance.name_servers import NameServers
from rocketmq_broker.protocol.bodies.route import BrokerData, ClusterInfo, QueueData, TopicRouteData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.name_server import GetRouteInfoRequestHeader
from rocketmq_broker.remoting.errors import RemotingTimeout
from tests.unit.client.peers import Peer, Peers, answer, success

ROUTE = TopicRouteData(queue_datas=[QueueData("b", 4, 4, 6)], broker_datas=[BrokerData("c", "b", {0: "b:1"})])


def knowing(request: object) -> bytes:
    return success(body=ROUTE.encode())


def ignorant(request: object) -> bytes:
    return answer(ResponseCode.TOPIC_NOT_EXIST, remark="No topic route info")


def empty(request: object) -> bytes:
    return success()


def a_broker(request: object) -> bytes:
    return answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=" request type 105 not supported")


def asking(**peers: Peer) -> tuple[NameServers, Peers]:
    servers = Peers(**peers)
    return NameServers(("a:1", "b:1"), servers.as_remoting()), servers


async def test_a_route_is_asked_for_in_standard_json() -> None:
    servers, peers = asking(a=knowing)
    assert await servers.find_route("orders") == ROUTE
    header = peers.asked[0].command.decode_header(GetRouteInfoRequestHeader)
    assert (header.topic, header.accept_standard_json_only) == ("orders", True)


async def test_one_that_is_away_is_passed_over_and_remembered() -> None:
    servers, peers = asking(b=knowing)
    assert await servers.find_route("orders") == ROUTE
    assert await servers.find_route("orders") == ROUTE
    assert [asked.address for asked in peers.asked] == ["a:1", "b:1", "b:1"]


async def test_one_that_hangs_leaves_time_for_the_next() -> None:
    servers, peers = asking(a=lambda request: RemotingTimeout("a:1"), b=knowing)
    assert await servers.find_route("orders") == ROUTE
    assert [asked.timeout_ms for asked in peers.asked] == [1000, 3000]


async def test_one_that_does_not_know_the_topic_yet_is_not_the_last_word() -> None:
    servers, _ = asking(a=ignorant, b=knowing)
    assert await servers.find_route("orders") == ROUTE


@pytest.mark.parametrize("peers", [{"a": ignorant}, {"a": ignorant, "b": ignorant}, {"a": empty, "b": empty}])
async def test_a_topic_that_nobody_knows_is_none(peers: dict[str, Peer]) -> None:
    servers, _ = asking(**peers)
    assert await servers.find_route("orders") is None


@pytest.mark.parametrize(
    ("peers", "advice"),
    [
        ({}, r"no name server answers at a:1;b:1 .*Start the broker, or set NAMESRV_ADDR"),
        ({"a": a_broker}, "A broker listens at this address: set NAMESRV_ADDR to the name server"),
    ],
)
async def test_where_no_name_server_answers_the_error_says_what_to_do(peers: dict[str, Peer], advice: str) -> None:
    servers, _ = asking(**peers)
    with pytest.raises(NameServerUnreachable, match=advice):
        await servers.find_route("orders")


async def test_an_answer_that_makes_no_sense_is_named_so() -> None:
    servers, _ = asking(a=lambda request: success(body=b"<html>"))
    with pytest.raises(UnreadableAnswer, match="the response cannot be decoded"):
        await servers.find_route("orders")


async def test_the_cluster_is_asked_for_without_a_header() -> None:
    info = ClusterInfo(broker_addr_table={"b": BrokerData("c", "b", {0: "b:1"})}, cluster_addr_table={"c": ["b"]})
    servers, peers = asking(a=lambda request: success(body=info.encode()))
    assert await servers.cluster_info() == info
    assert peers.asked[0].command.code == RequestCode.GET_BROKER_CLUSTER_INFO
    assert peers.asked[0].command.ext_fields() == {}
