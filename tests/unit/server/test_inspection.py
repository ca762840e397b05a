"""Tests the data that operators inspect: consume queues, and statistics of topics."""

import msgspec
import pytest

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.protocol.bodies.broker import BrokerStatsData, QueryConsumeQueueResponseBody
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, SubscriptionData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rocketmq_broker.protocol.headers.topic import QueryConsumeQueueRequestHeader, ViewBrokerStatsDataRequestHeader
from rocketmq_broker.server.operators.consume_queue_processor import ConsumeQueueProcessor
from rocketmq_broker.server.operators.flow_processor import FlowProcessor
from tests.e2e.clients import SEND
from tests.unit.server.conftest import PULL, START_MS, Desk, Wire
from tests.unit.store.conftest import append


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.dispatcher.add(ConsumeQueueProcessor(store=desk.store, consumer_groups=desk.consumers).handlers)
    desk.dispatcher.add(FlowProcessor(desk.statistics.flows).handlers)
    for number in range(3):
        append(desk.store, queue_id=1, properties=b"TAGS\x01created", store_timestamp=START_MS + number)
    desk.commit.settle()
    return desk


def units(desk: Desk, **fields: object) -> QueryConsumeQueueResponseBody:
    header = QueryConsumeQueueRequestHeader(**{"topic": "orders", "queue_id": 1, "index": 0, "count": 10, **fields})
    return QueryConsumeQueueResponseBody.decode(desk.ask(RequestCode.QUERY_CONSUME_QUEUE, header).body)


def test_the_units_of_a_consume_queue_are_shown(desk: Desk) -> None:
    body = units(desk)
    assert (body.min_queue_index, body.max_queue_index) == (0, 3)
    offsets = [unit.physic_offset for unit in body.queue_data]
    assert offsets == [desk.store.commit_log_offset(b"orders", 1, number) for number in range(3)]
    assert body.filter_data is None


def test_no_more_units_are_shown_than_asked_for(desk: Desk) -> None:
    assert [unit.physic_offset for unit in units(desk, index=1, count=1).queue_data] == [
        desk.store.commit_log_offset(b"orders", 1, 1)
    ]


def test_the_subscription_of_a_group_is_shown_with_the_units(desk: Desk) -> None:
    assert units(desk, consumer_group="g").filter_data == "g@orders is not online!"
    subscription = SubscriptionData(topic="orders", sub_string="created")
    desk.heartbeat(Wire(), consumers=[ConsumerData(group_name="g", subscription_data_set=[subscription])])
    assert units(desk, consumer_group="g").subscription_data == subscription


def test_a_queue_that_there_is_not_has_no_units(desk: Desk) -> None:
    header = QueryConsumeQueueRequestHeader(topic="orders", queue_id=7, index=0, count=1)
    answer = desk.ask(RequestCode.QUERY_CONSUME_QUEUE, header)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "7@orders is not exist!")


def test_past_the_end_of_a_queue_the_answer_has_no_body(desk: Desk) -> None:
    header = QueryConsumeQueueRequestHeader(topic="orders", queue_id=1, index=3, count=1)
    answer = desk.ask(RequestCode.QUERY_CONSUME_QUEUE, header)
    assert (answer.code, answer.body) == (ResponseCode.SUCCESS, b"")


def test_a_figure_is_shown_once_it_was_counted(desk: Desk) -> None:
    header = ViewBrokerStatsDataRequestHeader(stats_name="GROUP_GET_NUMS", stats_key="orders@g")
    answer = desk.ask(RequestCode.VIEW_BROKER_STATS_DATA, header)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "The stats <GROUP_GET_NUMS> <orders@g> not exist")
    desk.statistics.flows.got(b"orders", "g", 20, 2000)
    desk.statistics.flows.sample(START_MS)
    figures = BrokerStatsData.decode(desk.ask(RequestCode.VIEW_BROKER_STATS_DATA, header).body)
    assert (figures.stats_minute.sum, figures.stats_minute.tps) == (20, 2.0)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("TOPIC_PUT_NUMS", "orders"),
        ("TOPIC_PUT_SIZE", "orders"),
        ("GROUP_GET_NUMS", "orders@g"),
        ("GROUP_GET_SIZE", "orders@g"),
        ("SNDBCK_PUT_NUMS", "orders@g"),
        ("BROKER_PUT_NUMS", "DefaultCluster"),
        ("BROKER_GET_NUMS", "DefaultCluster"),
    ],
)
def test_each_figure_that_the_exporter_asks_for_is_there_once_messages_passed(desk: Desk, name: str, key: str) -> None:
    desk.topics.update(TopicConfig("orders", 2, 2))
    desk.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"hello")
    pulled = desk.ask(RequestCode.PULL_MESSAGE, msgspec.structs.replace(PULL, queue_id=0, sys_flag=4, subscription="*"))
    (record,) = decode_records(pulled.body)
    desk.offsets.commit("g", "orders", 0, 0)
    back = ConsumerSendMsgBackRequestHeader(offset=record.commit_log_offset, group="g", delay_level=0)
    desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back)
    desk.statistics.sample_flows(START_MS)
    header = ViewBrokerStatsDataRequestHeader(stats_name=name, stats_key=key)
    figures = BrokerStatsData.decode(desk.ask(RequestCode.VIEW_BROKER_STATS_DATA, header).body)
    sizes = [each.size for queue_id in (0, 1) for each in desk.messages("orders", queue_id)]
    expected = {"TOPIC_PUT_NUMS": 4, "TOPIC_PUT_SIZE": sum(sizes), "GROUP_GET_SIZE": record.size}
    assert figures.stats_minute.sum == expected.get(name, 1)
    assert figures.stats_minute.tps == figures.stats_minute.sum / 10
