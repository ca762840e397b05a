"""Tests bodies as fastjson writes them, as Go writes them, and with damage."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.text.fastjson import standard_json
from rocketmq_broker.protocol import BodyError
from rocketmq_broker.protocol.bodies.broker import ConsumeQueueData, QueryConsumeQueueResponseBody
from rocketmq_broker.protocol.bodies.group import (
    ConsumerConnection,
    ConsumeStats,
    ConsumeStatsList,
    GetConsumerStatusBody,
    LockBatchResponseBody,
    OffsetWrapper,
    ResetOffsetBody,
)
from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere, ConsumeType, HeartbeatData, MessageModel
from rocketmq_broker.protocol.bodies.route import BrokerData, ClusterInfo, QueueData, TopicRouteData
from rocketmq_broker.protocol.bodies.running_info import (
    CMResult,
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    ProcessQueueInfo,
)
from rocketmq_broker.protocol.bodies.topic import TopicList
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.body import Body
from rocketmq_broker.protocol.queue_table import MessageQueueData, QueueTable

QUEUE = MessageQueue("topic", "broker-a", 3)
ROUTE = TopicRouteData(
    queue_datas=[QueueData("broker-a", 4, 4, 6)], broker_datas=[BrokerData("c", "broker-a", {0: "127.0.0.1:10911", 1: "b:1"})]
)


def test_a_route_with_unquoted_broker_ids_is_read() -> None:
    text = (
        b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911",1:"b:1"},"brokerName":"broker-a","cluster":"c"}],'
        b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
    )
    assert TopicRouteData.decode(text) == ROUTE
    assert ROUTE.broker_datas[0].master_address == "127.0.0.1:10911"


def test_a_route_has_the_members_that_apaches_name_servers_write() -> None:
    """Route data has the members of 4.9.7. Standard JSON also has the member of RocketMQ 5, which clients of 5 may need."""
    old, new = (ROUTE.encode_for(accepts_standard_json_only=standard) for standard in (False, True))
    queues = (
        b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","readQueueNums":4,"writeQueueNums":4,"perm":6,'
        b'"topicSysFlag":0}]}'
    )
    addresses = b'{0:"127.0.0.1:10911",1:"b:1"}'
    assert old == b'{"brokerDatas":[{"brokerAddrs":%b,"brokerName":"broker-a","cluster":"c"}],%b' % (addresses, queues)
    standard = plain(new)
    assert standard["brokerDatas"][0].pop("enableActingMaster") is False
    assert standard == plain(old)


@pytest.mark.parametrize(
    "body",
    [
        ROUTE,
        TopicList(topic_list=["a"]),
        ConsumerConnection(),
        ConsumeStatsList(consume_stats_list=[{"g": [ConsumeStats(offset_table=QueueTable({QUEUE: OffsetWrapper()}))]}]),
        ConsumerRunningInfo(mq_table=QueueTable({QUEUE: ProcessQueueInfo(commit_offset=4)})),
        ConsumeMessageDirectlyResult(),
        QueryConsumeQueueResponseBody(queue_data=[ConsumeQueueData(0, 1, 2)]),
        TransactionList(transactions=[TransactionInfo("pending", 0)]),
    ],
    ids=lambda body: type(body).__name__,
)
def test_what_there_is_none_of_is_not_written(body: Body) -> None:
    encoded = body.encode()
    assert b"null" not in encoded
    assert type(body).decode(encoded) == body


def test_null_within_a_text_is_no_null() -> None:
    body = TopicList(topic_list=['"a":null', "null"])
    assert plain(body.encode()) == {"topicList": ['"a":null', "null"]}


def plain(encoded: bytes) -> Any:
    return msgspec.json.decode(standard_json(encoded))


def test_a_cluster_is_written_with_unquoted_broker_ids() -> None:
    info = ClusterInfo(broker_addr_table={"broker-a": ROUTE.broker_datas[0]}, cluster_addr_table={"c": ["broker-a"]})
    assert b"{0:" in info.encode()
    assert ClusterInfo.decode(info.encode()) == info


def test_maps_from_queues_within_a_map_come_back_as_they_went() -> None:
    body = GetConsumerStatusBody(consumer_table={"client": QueueTable({QUEUE: 7})})
    assert GetConsumerStatusBody.decode(body.encode()) == body


def test_maps_from_queues_are_written_with_object_keys() -> None:
    encoded = ResetOffsetBody(offset_table=QueueTable({QUEUE: 7})).encode()
    assert encoded == b'{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"topic"}:7}}'


@pytest.mark.parametrize("table", [b"[1]", b"5", b'"x"', b'{"x":7}', b'{"{}":7}', b"{5:7}", b'{{"queueId":3}:7}'])
def test_what_is_no_map_from_queues_is_refused_in_words(table: bytes) -> None:
    with pytest.raises(BodyError, match="invalid ResetOffsetBody body"):
        ResetOffsetBody.decode(b'{"offsetTable":%b}' % table)


def test_null_stands_for_a_map_from_queues_that_is_not_there() -> None:
    assert ResetOffsetBody.decode(b'{"offsetTable":null}') == ResetOffsetBody()


def test_a_cpp_clients_heartbeat_with_ordinals_and_quoted_numbers_is_read() -> None:
    heartbeat = HeartbeatData.decode(
        b'{"clientID":"10.0.0.1@1","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"g","messageModel":0,'
        b'"subscriptionDataSet":[{"codeSet":["97","98"],"subString":"a||b","subVersion":"1700000000000","tagsSet":["a","b"],'
        b'"topic":"orders"}]}]}\n'
    )
    (consumer,) = heartbeat.consumer_data_set
    (subscription,) = consumer.subscription_data_set
    assert consumer.consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    assert consumer.consume_type is ConsumeType.CONSUME_PASSIVELY
    assert consumer.message_model is MessageModel.BROADCASTING
    assert (subscription.sub_version, subscription.code_set) == (1_700_000_000_000, [97, 98])


def test_a_go_clients_heartbeat_is_read() -> None:
    heartbeat = HeartbeatData.decode(
        b'{"clientID":"10.0.0.1@7#8","producerDataSet":[{"groupName":"CLIENT_INNER_PRODUCER"}],"consumerDataSet":[{"groupName":"g",'
        b'"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",'
        b'"subscriptionDataSet":[{"classFilterMode":false,"topic":"t","subString":"a || b","tagsSet":["a","b"],'
        b'"codeSet":["97","98"],'
        b'"subVersion":1700000000000000000,"expressionType":"TAG"}],"unitMode":false}]}'
    )
    (consumer,) = heartbeat.consumer_data_set
    assert (consumer.consume_type, consumer.message_model) == (ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING)
    assert consumer.consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    assert consumer.subscription_data_set[0].code_set == [97, 98]


def test_a_go_clients_result_is_a_number() -> None:
    assert ConsumeMessageDirectlyResult.decode(b'{"consumeResult":1}').consume_result == 1
    assert ConsumeMessageDirectlyResult.decode(b'{"consumeResult":"CR_LATER"}').consume_result is CMResult.CR_LATER


def test_locked_queues_are_named_as_java_names_them() -> None:
    body = LockBatchResponseBody(lock_ok_mq_set=[MessageQueueData.of(QUEUE)])
    assert body.encode() == b'{"lockOKMQSet":[{"brokerName":"broker-a","queueId":3,"topic":"topic"}]}'
    assert LockBatchResponseBody.decode(body.encode()).lock_ok_mq_set[0].to_queue() == QUEUE


@pytest.mark.parametrize(
    "damaged",
    [
        b"", b"{", b"[]", b"{]", b"{,}", b"null", b"\xff\xfe", b"[" * 1000, b'{"clientID"}', b'{"clientID":"c"}}',
        b'{"clientID":"c', b'{"clientID":,}', b'{"clientID":"\xff"}', b'{"clientID":"c" 5}',
    ],
)  # fmt: skip
def test_a_damaged_body_is_refused_in_words(damaged: bytes) -> None:
    with pytest.raises(BodyError, match="invalid HeartbeatData body"):
        HeartbeatData.decode(damaged)


@given(st.binary(max_size=60))
def test_no_garbage_is_a_surprise(garbage: bytes) -> None:
    for data in (garbage, b'{"offsetTable":{' + garbage):
        with pytest.raises(BodyError):
            ResetOffsetBody.decode(data + b"x")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    )
)
def test_standard_json_stays_what_it_is(value: object) -> None:
    assert msgspec.json.decode(standard_json(msgspec.json.encode(value))) == value


def test_a_long_body_is_read_in_standard_json_only() -> None:
    filling = b'"x":"%b"' % (b"x" * (600 * 1024))
    assert HeartbeatData.decode(b'{"clientID":"a",%b}' % filling).client_id == "a"
    with pytest.raises(BodyError, match="standard JSON"):
        HeartbeatData.decode(b'{clientID:"a",%b}' % filling)
