"""Tests encoding and decoding commands with typed headers, in both serializers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.protocol import (
    CURRENT_VERSION,
    CommandHeader,
    FrameDecoder,
    HeaderError,
    LanguageCode,
    RemotingCommand,
    ReplyTo,
    RequestCode,
    ResponseCode,
    SerializeType,
    encode_request,
    encode_response,
)
from rocketmq_broker.protocol.command import encode_response_in_parts
from rocketmq_broker.protocol.headers.pull import GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader, PullMessageRequestHeader
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageResponseHeader
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader, QueryMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from tests.header_types import header_types

BOTH = pytest.mark.parametrize("serialize_type", SerializeType)

text = st.text(min_size=1, max_size=40).filter(lambda value: value < "\ud800" or value.isprintable())
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


def decode(frame: bytes) -> RemotingCommand:
    (command,) = FrameDecoder().feed(frame)
    return command


def json_request(ext_fields: str) -> RemotingCommand:
    header = f'{{"code":30,"extFields":{ext_fields},"flag":0,"language":"CPP","opaque":5,"version":3}}'.encode()
    return decode((len(header) + 4).to_bytes(4) + len(header).to_bytes(4) + header)


@given(
    properties=st.text(max_size=200),
    topic=text,
    queue_id=int32,
    born_timestamp=int64,
    max_reconsume_times=st.none() | int32,
    batch=st.booleans(),
    serialize_type=st.sampled_from(SerializeType),
    header_type=st.sampled_from([SendMessageRequestHeader, SendMessageRequestHeaderV2]),
    body=st.binary(max_size=50),
    opaque=int32,
)
def test_a_send_header_comes_back_as_it_went(
    properties: str,
    topic: str,
    queue_id: int,
    born_timestamp: int,
    max_reconsume_times: int | None,
    batch: bool,
    serialize_type: SerializeType,
    header_type: type[SendMessageRequestHeader],
    body: bytes,
    opaque: int,
) -> None:
    header = header_type(
        producer_group="group",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=queue_id,
        sys_flag=4,
        born_timestamp=born_timestamp,
        flag=0,
        properties=properties,
        max_reconsume_times=max_reconsume_times,
        batch=batch,
    )
    command = decode(encode_request(310, header, body, opaque=opaque, serialize_type=serialize_type))
    assert (command.code, command.opaque, command.body) == (310, opaque, body)
    assert (command.is_response, command.is_oneway, command.remark) == (False, False, None)
    assert decode(command.encode()) == command
    assert command.decode_header(header_type) == header


@BOTH
def test_an_answer_carries_the_opaque_serializer_and_remark(serialize_type: SerializeType) -> None:
    request = decode(encode_request(RequestCode.GET_MAX_OFFSET, opaque=9, serialize_type=serialize_type))
    answer = decode(encode_response(request, ResponseCode.SYSTEM_ERROR, GetMaxOffsetResponseHeader(offset=3), b"b", "nö\n"))
    assert answer.is_response
    assert (answer.opaque, answer.serialize_type, answer.code, answer.body) == (9, serialize_type, 1, b"b")
    assert answer.remark == "nö\n"
    assert answer.decode_header(GetMaxOffsetResponseHeader).offset == 3
    assert (answer.version, answer.language_code) == (CURRENT_VERSION, LanguageCode.PYTHON)


@BOTH
def test_two_numbers_of_a_request_are_enough_to_answer_it(serialize_type: SerializeType) -> None:
    request = decode(encode_request(RequestCode.HEART_BEAT, opaque=77, serialize_type=serialize_type))
    assert encode_response(ReplyTo(77, serialize_type), 0) == encode_response(request, 0)


@BOTH
@pytest.mark.parametrize("parts", [[], [b"one"], [b"one", b"", b"two"]])
def test_a_body_in_parts_makes_the_same_frame(serialize_type: SerializeType, parts: list[bytes]) -> None:
    request, header = ReplyTo(77, serialize_type), GetMaxOffsetResponseHeader(offset=3)
    assert encode_response_in_parts(request, 0, header, parts, "ü") == encode_response(request, 0, header, b"".join(parts), "ü")


@BOTH
def test_a_oneway_request_says_so(serialize_type: SerializeType) -> None:
    assert decode(encode_request(37, opaque=1, serialize_type=serialize_type, oneway=True)).is_oneway


def test_a_json_answer_is_written_as_fastjson_writes_it() -> None:
    frame = encode_response(ReplyTo(5, SerializeType.JSON), 17, remark='no "topic"')
    header = (
        b'{"code":17,"flag":1,"language":"PYTHON","opaque":5,"remark":"no \\"topic\\"",'
        b'"serializeTypeCurrentRPC":"JSON","version":407}'
    )
    assert frame == (len(header) + 4).to_bytes(4) + len(header).to_bytes(4) + header


def test_a_binary_request_is_laid_out_as_rocketmq_does() -> None:
    frame = encode_request(
        37, GetMaxOffsetRequestHeader(topic="t", queue_id=1), b"B", opaque=2, serialize_type=SerializeType.ROCKETMQ, oneway=True
    )
    fields = bytes.fromhex("0005") + b"topic" + bytes.fromhex("00000001") + b"t"
    fields += bytes.fromhex("0007") + b"queueId" + bytes.fromhex("00000001") + b"1"
    header = bytes.fromhex("0025 03 0197 00000002 00000002 00000000") + len(fields).to_bytes(4) + fields
    assert frame == (len(header) + 5).to_bytes(4) + b"\1" + len(header).to_bytes(3) + header + b"B"


@given(
    header=st.builds(
        SendMessageResponseHeader,
        msg_id=st.just("7F00000100002A9F0000000000001234"),
        queue_id=int32,
        queue_offset=int64,
        transaction_id=st.none() | text,
        region_id=text,
        is_trace_on=st.booleans(),
    )
)
def test_the_send_response_written_by_hand_is_what_the_loop_would_write(header: SendMessageResponseHeader) -> None:
    for serialize_type in SerializeType:
        answer = decode(encode_response(ReplyTo(1, serialize_type), 0, header))
        assert answer.ext_fields() == CommandHeader.ext_fields(header)
        assert answer.decode_header(SendMessageResponseHeader) == header


def test_extension_fields_may_be_null_or_not_there() -> None:
    assert json_request("null").ext_fields() == {}
    with pytest.raises(HeaderError, match="<topic> is null"):
        json_request("null").decode_header(GetMaxOffsetRequestHeader)


def test_bare_numbers_booleans_and_nulls_are_taken_for_their_strings() -> None:
    command = json_request(
        '{"topic":123,"defaultTopic":"TBW102","readQueueNums":8,"writeQueueNums":"8","perm":6,"topicFilterType":"SINGLE_TAG",'
        '"topicSysFlag":null,"order":true,"unknown":1.5}'
    )
    header = command.decode_header(CreateTopicRequestHeader)
    assert (header.topic, header.read_queue_nums, header.order, header.topic_sys_flag) == ("123", 8, True, None)
    assert command.ext_fields()["order"] == "true"


def test_torn_binary_fields_are_refused() -> None:
    header = GetMaxOffsetRequestHeader(topic="topic", queue_id=1)
    command = decode(encode_request(30, header, opaque=1, serialize_type=SerializeType.ROCKETMQ))
    for end in range(1, len(command.binary_fields)):
        command.binary_fields = header.encode_binary()[:end]
        with pytest.raises(HeaderError):
            command.decode_header(GetMaxOffsetRequestHeader)


def test_an_empty_binary_value_counts_as_absent() -> None:
    header = PullMessageRequestHeader(
        consumer_group="g", topic="t", queue_id=0, queue_offset=0, max_msg_nums=1, sys_flag=0, commit_offset=0,
        suspend_timeout_millis=1, subscription="", sub_version=0,
    )  # fmt: skip
    command = decode(encode_request(11, header, opaque=1, serialize_type=SerializeType.ROCKETMQ))
    assert command.decode_header(PullMessageRequestHeader).subscription is None


@BOTH
@pytest.mark.parametrize("decision", [0, 8, 12])
def test_a_decision_is_commit_rollback_or_none(serialize_type: SerializeType, decision: int) -> None:
    header = EndTransactionRequestHeader(
        producer_group="g", tran_state_table_offset=1, commit_log_offset=2, commit_or_rollback=decision, msg_id="id"
    )
    command = decode(encode_request(37, header, opaque=1, serialize_type=serialize_type))
    assert command.decode_header(EndTransactionRequestHeader) == header


def test_a_query_by_unique_key_is_told_by_its_field() -> None:
    query = QueryMessageRequestHeader(topic="t", key="k", max_num=1, begin_timestamp=0, end_timestamp=1, unique_key_query=True)
    assert query.ext_fields()["_UNIQUE_KEY_QUERY"] == "true"


def test_a_language_without_a_number_is_other() -> None:
    assert json_request("{}").language_code is LanguageCode.CPP
    assert RemotingCommand(code=1, opaque=1, language="NODE_JS").language_code is LanguageCode.OTHER
    assert RemotingCommand(code=1, opaque=1, language=99).language_code is LanguageCode.OTHER
    assert RemotingCommand(code=1, opaque=1, language=9).language_code is LanguageCode.GO


def test_no_two_fields_of_a_header_have_the_same_name_on_the_wire() -> None:
    for header_type in header_types().values():
        names = header_type.__struct_encode_fields__
        assert len(set(names)) == len(names)
