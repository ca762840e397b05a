"""Tests routes and clusters on the wire: masters and slaves, order, and the two formats of broker ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.protocol import BodyError
from rocketmq_broker.protocol.bodies.route import MASTER_ID, BrokerData, ClusterInfo, QueueData, TopicRouteData

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=10)
addresses = st.dictionaries(st.integers(0, 9), names, max_size=3)


@given(
    brokers=st.lists(st.builds(BrokerData, cluster=names, broker_name=names, broker_addrs=addresses), max_size=3),
    counts=st.lists(st.integers(0, 65_535), max_size=3),
    order=st.none() | names,
    standard=st.booleans(),
)
def test_a_route_comes_back_from_both_ways_to_write_it(
    brokers: list[BrokerData], counts: list[int], order: str | None, standard: bool
) -> None:
    queues = [QueueData("broker-a", count, count, 6) for count in counts]
    route = TopicRouteData(queue_datas=queues, broker_datas=brokers, order_topic_conf=order)
    assert TopicRouteData.decode(route.encode_for(accepts_standard_json_only=standard)) == route
    assert TopicRouteData.decode(route.encode()) == route


@given(st.dictionaries(names, addresses, max_size=3))
def test_a_cluster_comes_back_as_it_went(brokers: dict[str, dict[int, str]]) -> None:
    info = ClusterInfo(
        broker_addr_table={name: BrokerData("c", name, by_id) for name, by_id in brokers.items()},
        cluster_addr_table={"c": list(brokers)},
    )
    assert ClusterInfo.decode(info.encode()) == info


def test_the_master_is_the_broker_with_id_0() -> None:
    assert MASTER_ID == 0
    assert BrokerData("c", "broker-a", {1: "slave:1", 0: "master:1"}).master_address == "master:1"
    assert BrokerData("c", "broker-a", {1: "slave:1"}).master_address is None


def test_an_acting_master_is_read_and_written_for_readers_of_standard_json_alone() -> None:
    text = b'{"brokerDatas":[{"cluster":"c","brokerName":"b","brokerAddrs":{"1":"s:1"},"enableActingMaster":true}]}'
    route = TopicRouteData.decode(text)
    assert route.broker_datas[0].enable_acting_master
    assert b'"enableActingMaster":true' in route.encode()
    assert b"enableActingMaster" not in route.encode_for(accepts_standard_json_only=False)


def test_a_topic_without_order_says_nothing_of_it() -> None:
    assert b"orderTopicConf" not in TopicRouteData().encode()
    assert b'"orderTopicConf":"broker-a:4"' in TopicRouteData(order_topic_conf="broker-a:4").encode()


def test_null_for_tables_stands_for_empty_ones() -> None:
    route = TopicRouteData.decode(b'{"queueDatas":null,"brokerDatas":null,"filterServerTable":null,"orderTopicConf":null}')
    assert (route.queue_datas, route.broker_datas, route.order_topic_conf) == ([], [], None)


@pytest.mark.parametrize(
    "text",
    [
        b'{"queueDatas":[{"brokerName":"b"}]}',
        b'{"queueDatas":[{"brokerName":"b","readQueueNums":"many","writeQueueNums":1,"perm":6}]}',
        b'{"brokerDatas":[{"brokerName":"b","cluster":"c","brokerAddrs":{"first":"a:1"}}]}',
        b'{"brokerDatas":[{"brokerName":"b","cluster":"c","brokerAddrs":[]}]}',
        b'{"brokerDatas":{}}',
    ],
)
def test_what_is_no_route_is_refused_in_words(text: bytes) -> None:
    with pytest.raises(BodyError, match="invalid TopicRouteData body"):
        TopicRouteData.decode(text)
