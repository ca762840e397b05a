"""Frames that Apache's 4.9.7 client, mqadmin, broker and name server sent (see tests/data/frames)."""

import dataclasses
import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from rocketmq_broker.message import record
from rocketmq_broker.message.text.fastjson import standard_json
from rocketmq_broker.protocol import CommandHeader, FrameDecoder, RemotingCommand, RequestCode, SerializeType, encode_request
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.bodies.group import (
    ConsumeStats,
    ConsumeStatsList,
    GetConsumerListByGroupResponseBody,
    GroupList,
    LockBatchRequestBody,
    LockBatchResponseBody,
    ProducerTableInfo,
    ResetOffsetBody,
    UnlockBatchRequestBody,
)
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData
from rocketmq_broker.protocol.bodies.register_broker import RegisterBrokerBody
from rocketmq_broker.protocol.bodies.route import ClusterInfo, TopicRouteData
from rocketmq_broker.protocol.bodies.topic import SubscriptionGroupBody, TopicList, TopicStatsTable
from rocketmq_broker.protocol.body import Body
from rocketmq_broker.protocol.headers import group, name_server, pull, send, topic, transaction

REQUEST_HEADERS: dict[int, type[CommandHeader]] = {
    RequestCode.PULL_MESSAGE: pull.PullMessageRequestHeader,
    RequestCode.QUERY_MESSAGE: topic.QueryMessageRequestHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: pull.QueryConsumerOffsetRequestHeader,
    RequestCode.UPDATE_CONSUMER_OFFSET: pull.UpdateConsumerOffsetRequestHeader,
    RequestCode.UPDATE_AND_CREATE_TOPIC: topic.CreateTopicRequestHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: pull.SearchOffsetRequestHeader,
    RequestCode.GET_MAX_OFFSET: pull.GetMaxOffsetRequestHeader,
    RequestCode.GET_MIN_OFFSET: pull.GetMinOffsetRequestHeader,
    RequestCode.GET_EARLIEST_MSG_STORETIME: pull.GetEarliestMsgStoretimeRequestHeader,
    RequestCode.UNREGISTER_CLIENT: group.UnregisterClientRequestHeader,
    RequestCode.CONSUMER_SEND_MSG_BACK: send.ConsumerSendMsgBackRequestHeader,
    RequestCode.END_TRANSACTION: transaction.EndTransactionRequestHeader,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: group.GetConsumerListByGroupRequestHeader,
    RequestCode.CHECK_TRANSACTION_STATE: transaction.CheckTransactionStateRequestHeader,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: group.NotifyConsumerIdsChangedRequestHeader,
    RequestCode.PUT_KV_CONFIG: name_server.PutKVConfigRequestHeader,
    RequestCode.DELETE_KV_CONFIG: name_server.DeleteKVConfigRequestHeader,
    RequestCode.REGISTER_BROKER: name_server.RegisterBrokerRequestHeader,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: name_server.GetRouteInfoRequestHeader,
    RequestCode.GET_TOPIC_STATS_INFO: topic.GetTopicStatsInfoRequestHeader,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: group.GetConsumerConnectionListRequestHeader,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: group.GetProducerConnectionListRequestHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: name_server.WipeWritePermOfBrokerRequestHeader,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: name_server.AddWritePermOfBrokerRequestHeader,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: group.DeleteSubscriptionGroupRequestHeader,
    RequestCode.GET_CONSUME_STATS: group.GetConsumeStatsRequestHeader,
    RequestCode.DELETE_TOPIC_IN_BROKER: topic.DeleteTopicRequestHeader,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: name_server.DeleteTopicFromNamesrvRequestHeader,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: group.ResetOffsetRequestHeader,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: group.QueryTopicConsumeByWhoRequestHeader,
    RequestCode.SEND_MESSAGE_V2: send.SendMessageRequestHeaderV2,
    RequestCode.SEND_BATCH_MESSAGE: send.SendMessageRequestHeaderV2,
    RequestCode.GET_BROKER_CONSUME_STATS: group.GetConsumeStatsInBrokerHeader,
}
RESPONSE_HEADERS: dict[int, type[CommandHeader]] = {
    RequestCode.PULL_MESSAGE: pull.PullMessageResponseHeader,
    RequestCode.QUERY_MESSAGE: topic.QueryMessageResponseHeader,
    RequestCode.QUERY_CONSUMER_OFFSET: pull.QueryConsumerOffsetResponseHeader,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: pull.SearchOffsetResponseHeader,
    RequestCode.GET_MAX_OFFSET: pull.GetMaxOffsetResponseHeader,
    RequestCode.GET_MIN_OFFSET: pull.GetMinOffsetResponseHeader,
    RequestCode.GET_EARLIEST_MSG_STORETIME: pull.GetEarliestMsgStoretimeResponseHeader,
    RequestCode.SEND_MESSAGE_V2: send.SendMessageResponseHeader,
    RequestCode.SEND_BATCH_MESSAGE: send.SendMessageResponseHeader,
    RequestCode.REGISTER_BROKER: name_server.RegisterBrokerResponseHeader,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: name_server.WipeWritePermOfBrokerResponseHeader,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: name_server.AddWritePermOfBrokerResponseHeader,
    RequestCode.GET_BROKER_CONFIG: topic.GetBrokerConfigResponseHeader,
}
REQUEST_BODIES: dict[int, type[Body]] = {
    RequestCode.HEART_BEAT: HeartbeatData,
    RequestCode.LOCK_BATCH_MQ: LockBatchRequestBody,
    RequestCode.UNLOCK_BATCH_MQ: UnlockBatchRequestBody,
    RequestCode.REGISTER_BROKER: RegisterBrokerBody,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: SubscriptionGroupBody,
}
RESPONSE_BODIES: dict[int, type[Body]] = {
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: GetConsumerListByGroupResponseBody,
    RequestCode.LOCK_BATCH_MQ: LockBatchResponseBody,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: TopicRouteData,
    RequestCode.GET_BROKER_CLUSTER_INFO: ClusterInfo,
    RequestCode.GET_TOPIC_STATS_INFO: TopicStatsTable,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: TopicList,
    RequestCode.GET_CONSUME_STATS: ConsumeStats,
    RequestCode.GET_BROKER_RUNTIME_INFO: KVTable,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: GroupList,
    RequestCode.GET_BROKER_CONSUME_STATS: ConsumeStatsList,
    RequestCode.GET_ALL_PRODUCER_INFO: ProducerTableInfo,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: ResetOffsetBody,
}


ADDED_BY_ROCKETMQ_5 = {"enableActingMaster"}
REQUEST_TYPE = "ReqT"
"""A field that Apache's client adds to some requests, whatever their header; its brokers do not read it."""


class Captured(NamedTuple):
    """A line of the file of captured frames."""

    sender: str
    request_code: int
    code: int
    is_response: bool
    frame: bytes

    def command(self) -> RemotingCommand:
        (command,) = FrameDecoder().feed(self.frame)
        return command


def load() -> list[Captured]:
    lines = (Path(__file__).parents[2] / "data/frames/apache-4.9.7.jsonl").read_text().splitlines()
    values = [json.loads(line) for line in lines]
    return [Captured(v["from"], v["request_code"], v["code"], v["is_response"], bytes.fromhex(v["frame"])) for v in values]


ALL = load()


def named(captured: Captured) -> str:
    name = RequestCode(captured.request_code).name
    return f"{name}-answer-{captured.code}" if captured.is_response else name


FAILED_SEND = 13
ANSWERS_WITH_HEADER = [each for each in ALL if each.is_response and each.command().ext_fields() and each.code != FAILED_SEND]

every_frame = pytest.mark.parametrize("captured", ALL, ids=named)


@every_frame
def test_a_frame_is_encoded_as_it_came(captured: Captured) -> None:
    assert captured.command().encode() == captured.frame


@pytest.mark.parametrize("captured", [each for each in ALL if not each.is_response], ids=named)
def test_the_header_of_a_request_keeps_every_field(captured: Captured) -> None:
    command = captured.command()
    header_type = REQUEST_HEADERS.get(captured.code)
    if header_type is None:
        assert set(command.ext_fields()) <= {"topic"}
        return
    header = command.decode_header(header_type)
    came = {name: value for name, value in command.ext_fields().items() if value and name != REQUEST_TYPE}
    written = {name: value for name, value in header.ext_fields().items() if value}
    assert came.items() <= written.items()
    again = encode_request(command.code, header, command.body, opaque=command.opaque, serialize_type=command.serialize_type)
    assert FrameDecoder().feed(again)[0].decode_header(header_type) == header


@pytest.mark.parametrize("captured", ANSWERS_WITH_HEADER, ids=named)
def test_the_header_of_an_answer_keeps_every_field(captured: Captured) -> None:
    command = captured.command()
    header = command.decode_header(RESPONSE_HEADERS[captured.request_code])
    assert command.ext_fields().items() <= header.ext_fields().items()


def body_type(captured: Captured) -> type[Body] | None:
    types = RESPONSE_BODIES if captured.is_response else REQUEST_BODIES
    return types.get(captured.request_code) if captured.command().body else None


@pytest.mark.parametrize("captured", [each for each in ALL if body_type(each)], ids=named)
def test_a_body_keeps_its_contents_when_encoded_again(captured: Captured) -> None:
    wanted = body_type(captured)
    assert wanted is not None
    data = captured.command().body
    body = wanted.decode(data)
    written = body.encode()
    assert wanted.decode(written) == body
    assert ordered(plain(written)) == ordered(plain(data))


def plain(data: bytes) -> Any:
    return msgspec.json.decode(standard_json(data))


def ordered(value: Any) -> Any:
    """Returns the value with sorted members and uniform object keys, without the members that RocketMQ 5 added."""
    if isinstance(value, dict):
        return {sorted_key(key): ordered(member) for key, member in value.items() if key not in ADDED_BY_ROCKETMQ_5}
    return [ordered(member) for member in value] if isinstance(value, list) else value


def sorted_key(key: str) -> str:
    return json.dumps(json.loads(key), sort_keys=True) if key.startswith("{") else key


def test_the_registration_is_checked_by_its_crc() -> None:
    for captured in ALL:
        if captured.code == RequestCode.REGISTER_BROKER:
            command = captured.command()
            header = command.decode_header(name_server.RegisterBrokerRequestHeader)
            assert header.body_crc32 == zlib.crc32(command.body) & 0x7FFFFFFF


def test_pulled_and_checked_messages_are_records() -> None:
    found = 0
    for captured in ALL:
        pulled = captured.is_response and captured.request_code == RequestCode.PULL_MESSAGE
        checked = captured.code == RequestCode.CHECK_TRANSACTION_STATE and not captured.is_response
        if pulled or checked:
            for each in record.decode_records(captured.command().body):
                assert each.encode() == record.encode_record(**fields_of(each))
                assert each.is_intact
                found += 1
    assert found


def fields_of(each: record.Record) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(record.Record)} - {"size", "body_crc"}
    return {name: getattr(each, name) for name in names}


def test_both_serializers_were_captured() -> None:
    assert {captured.command().serialize_type for captured in ALL} == set(SerializeType)
