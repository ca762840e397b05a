"""Tests how a route becomes a list of queues."""

import pytest

from rocketmq_broker.client.errors import NoRoute
from rocketmq_broker.client.instance.topic_queues import check_queue_counts, publish_queues, subscribe_queues
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.bodies.route import BrokerData, QueueData, TopicRouteData


def route(*brokers: tuple[str, int, int, int], order_topic_conf: str | None = None, masters: str = "ab") -> TopicRouteData:
    return TopicRouteData(
        queue_datas=[
            QueueData(broker_name=name, perm=perm, read_queue_nums=read, write_queue_nums=write)
            for name, perm, read, write in brokers
        ],
        broker_datas=[
            BrokerData(cluster="c", broker_name=name, broker_addrs={0 if name in masters else 1: "127.0.0.1:10911"})
            for name, *_ in brokers
        ],
        order_topic_conf=order_topic_conf,
    )


def test_messages_go_to_writeable_queues_in_the_order_of_the_brokers() -> None:
    assert publish_queues("t", route(("b", 6, 1, 1), ("a", 6, 2, 2))) == [
        MessageQueue("t", "a", 0),
        MessageQueue("t", "a", 1),
        MessageQueue("t", "b", 0),
    ]


def test_a_read_only_queue_takes_no_messages_and_a_write_only_one_gives_none() -> None:
    mixed = route(("a", 4, 1, 1), ("b", 2, 1, 1))
    assert publish_queues("t", mixed) == [MessageQueue("t", "b", 0)]
    assert subscribe_queues("t", mixed) == [MessageQueue("t", "a", 0)]


def test_a_broker_without_its_master_takes_no_messages_but_gives_them() -> None:
    slave_only = route(("a", 6, 1, 1), masters="")
    assert publish_queues("t", slave_only) == []
    assert subscribe_queues("t", slave_only) == [MessageQueue("t", "a", 0)]


def test_a_topic_that_its_first_message_creates_has_no_more_queues_than_asked_for() -> None:
    assert len(publish_queues("t", route(("a", 7, 8, 8)), at_most=4)) == 4
    assert len(publish_queues("t", route(("a", 7, 2, 8)), at_most=4)) == 2


def test_a_topic_in_global_order_keeps_its_queues_when_brokers_go_down() -> None:
    ordered = route(("a", 6, 8, 8), order_topic_conf="a:1;gone:2")
    assert publish_queues("t", ordered) == [MessageQueue("t", "a", 0), MessageQueue("t", "gone", 0), MessageQueue("t", "gone", 1)]


@pytest.mark.parametrize("counts", [(2**31 - 1, 4), (4, 2**31 - 1), (65_536, 4)])
def test_a_route_with_billions_of_queues_is_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(NoRoute, match="too many queues in the route of topic t"):
        check_queue_counts("t", route(("a", 6, *counts)))


@pytest.mark.parametrize("conf", ["a:2147483647", "a:4;b:many", "a:-1"])
def test_an_ordered_topic_with_billions_of_queues_or_none_at_all_is_refused(conf: str) -> None:
    with pytest.raises(NoRoute):
        check_queue_counts("t", route(("a", 6, 4, 4), order_topic_conf=conf))


def test_a_route_with_very_many_queues_is_taken() -> None:
    check_queue_counts("t", route(("a", 6, 65_535, 65_535), ("b", 6, 65_535, 8), order_topic_conf="a:4;b:8"))
