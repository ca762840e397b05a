"""Tests the accepted strings of header fields, and the errors for all others."""

import contextlib
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.protocol import CommandHeader, FrameDecoder, HeaderError, RemotingCommand, SerializeType, encode_request
from rocketmq_broker.protocol import ext_fields as fields_of
from rocketmq_broker.protocol.headers.group import ResetOffsetRequestHeader
from rocketmq_broker.protocol.headers.pull import GetMaxOffsetRequestHeader, SearchOffsetRequestHeader
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2
from rocketmq_broker.protocol.headers.topic import ViewMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from rocketmq_broker.protocol.headers.transaction_admin import (
    DecideTransactionRequestHeader,
    ListPendingTransactionsRequestHeader,
)

BOTH = pytest.mark.parametrize("serialize_type", SerializeType)
INT32_LIMITS = (-(2**31), 2**31 - 1)
INT64_LIMITS = (-(2**63), 2**63 - 1)


def command_with(fields: dict[str, str], serialize_type: SerializeType) -> RemotingCommand:
    """Returns a received command with these fields, whether or not a header defines them."""
    if serialize_type is SerializeType.JSON:
        return RemotingCommand(code=1, opaque=1, json_fields=msgspec.Raw(fields_of.encode_json(fields)))
    return RemotingCommand(code=1, opaque=1, binary_fields=fields_of.encode_binary(fields), serialize_type=serialize_type)


@BOTH
@pytest.mark.parametrize(("queue_id", "timestamp"), [*zip(INT32_LIMITS, INT64_LIMITS, strict=True)])
def test_numbers_may_be_as_large_as_javas(serialize_type: SerializeType, queue_id: int, timestamp: int) -> None:
    command = command_with({"topic": "t", "queueId": str(queue_id), "timestamp": str(timestamp)}, serialize_type)
    expected = SearchOffsetRequestHeader(topic="t", queue_id=queue_id, timestamp=timestamp)
    assert command.decode_header(SearchOffsetRequestHeader) == expected


NO_INT32 = (str(INT32_LIMITS[0] - 1), str(INT32_LIMITS[1] + 1), "9" * 400, "1.5", "seven", "0x7", " 7")


@pytest.mark.parametrize(("serialize_type", "queue_id"), [*product(SerializeType, NO_INT32), (SerializeType.JSON, "")])
def test_what_is_no_such_number_is_refused_by_its_field(serialize_type: SerializeType, queue_id: str) -> None:
    command = command_with({"topic": "t", "queueId": queue_id}, serialize_type)
    with pytest.raises(HeaderError, match="the custom field <queueId> is illegal") as refused:
        command.decode_header(GetMaxOffsetRequestHeader)
    assert refused.value.field == "queueId"


@BOTH
def test_a_field_that_is_missing_is_named_in_rocketmqs_words(serialize_type: SerializeType) -> None:
    with pytest.raises(HeaderError, match=r"^the custom field <queueId> is null$") as refused:
        command_with({"topic": "t"}, serialize_type).decode_header(GetMaxOffsetRequestHeader)
    assert refused.value.field == "queueId"


@BOTH
def test_fields_that_nobody_knows_are_passed_over(serialize_type: SerializeType) -> None:
    command = command_with({"topic": "t", "queueId": "3", "of5": "x", "": "nameless"}, serialize_type)
    assert command.decode_header(GetMaxOffsetRequestHeader) == GetMaxOffsetRequestHeader(topic="t", queue_id=3)


@BOTH
@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False), ("True", True), ("1", True), ("0", False)])
def test_a_boolean_is_read_as_clients_write_it(serialize_type: SerializeType, text: str, value: bool) -> None:
    fields = {"topic": "t", "group": "g", "timestamp": "1", "isForce": text}
    assert command_with(fields, serialize_type).decode_header(ResetOffsetRequestHeader).is_force is value


@BOTH
@pytest.mark.parametrize("text", ["yes", "2", "-1", "tru"])
def test_what_is_no_boolean_is_refused(serialize_type: SerializeType, text: str) -> None:
    fields = {"topic": "t", "group": "g", "timestamp": "1", "isForce": text}
    with pytest.raises(HeaderError, match="the custom field <isForce> is illegal"):
        command_with(fields, serialize_type).decode_header(ResetOffsetRequestHeader)


@pytest.mark.parametrize("value", [True, False])
def test_a_boolean_is_written_as_java_writes_it(value: bool) -> None:
    header = DecideTransactionRequestHeader(transaction_id="t", commit=value, reason="by hand")
    assert header.ext_fields()["commit"] == ("true" if value else "false")


def test_what_is_none_is_not_written() -> None:
    header = ListPendingTransactionsRequestHeader()
    assert header.ext_fields() == {"olderThanMs": "0", "after": "-1", "maxCount": "100"}


def test_a_header_without_fields_is_no_bytes_at_all() -> None:
    class Nothing(CommandHeader):
        pass

    assert (Nothing().encode_json(), Nothing().encode_binary()) == (b"", b"")
    assert Nothing.from_ext_fields({"x": "y"}) == Nothing()


@BOTH
@pytest.mark.parametrize("decision", ["1", "4", "-8", "2147483647"])
def test_a_decision_that_is_none_names_what_is_wrong(serialize_type: SerializeType, decision: str) -> None:
    fields = {
        "producerGroup": "g",
        "tranStateTableOffset": "1",
        "commitLogOffset": "2",
        "commitOrRollback": decision,
        "msgId": "i",
    }
    with pytest.raises(HeaderError, match=f"commitOrRollback field wrong: {decision}"):
        command_with(fields, serialize_type).decode_header(EndTransactionRequestHeader)


def test_both_send_headers_say_the_same_under_other_names() -> None:
    common = {
        "producer_group": "g", "topic": "t", "default_topic": "TBW102", "default_topic_queue_nums": 4, "queue_id": 1,
        "sys_flag": 0, "born_timestamp": 5, "flag": 0, "properties": "p", "reconsume_times": 2, "unit_mode": True,
        "batch": True, "max_reconsume_times": 3, "broker_name": "broker-a",
    }  # fmt: skip
    long, short = SendMessageRequestHeader(**common), SendMessageRequestHeaderV2(**common)  # type: ignore[arg-type]
    assert sorted(long.ext_fields().values()) == sorted(short.ext_fields().values())
    assert set(short.ext_fields()) == set("abcdefghijklmn")
    assert short.ext_fields()["n"] == long.ext_fields()["bname"] == "broker-a"


@given(
    fields=st.dictionaries(
        st.text(st.characters(codec="ascii"), min_size=1, max_size=20), st.text(st.characters(codec="utf-8"), min_size=1)
    ),
    serialize_type=st.sampled_from(SerializeType),
)
def test_any_fields_come_back_from_a_whole_frame(fields: dict[str, str], serialize_type: SerializeType) -> None:
    class Any(CommandHeader):
        def ext_fields(self) -> dict[str, str]:
            return fields

    (command,) = FrameDecoder().feed(encode_request(1, Any(), opaque=1, serialize_type=serialize_type))
    assert command.ext_fields() == fields


@given(st.binary(max_size=80))
def test_no_binary_fields_are_a_surprise(data: bytes) -> None:
    """Binary fields are decoded or refused as truncated, and decoded fields equal the bytes."""
    with contextlib.suppress(HeaderError):
        assert all(isinstance(name, str) and value for name, value in fields_of.decode_binary(data).items())


def test_of_two_fields_of_one_name_the_last_one_counts() -> None:
    twice = fields_of.encode_binary({"offset": "1"}) + fields_of.encode_binary({"offset": "2"})
    assert fields_of.decode_binary(twice) == {"offset": "2"}
    assert fields_of.decode_json(b'{"offset":"1","offset":"2"}') == {"offset": "2"}


def test_a_binary_value_that_is_no_utf_8_is_refused() -> None:
    damaged = fields_of.encode_binary({"topic": "x"})[:-1] + b"\xff"
    with pytest.raises(HeaderError, match="extension fields of a binary header are malformed"):
        fields_of.decode_binary(damaged)


def test_lengths_that_do_not_add_up_are_named() -> None:
    data = fields_of.encode_binary({"topic": "long"})[:-1]
    with pytest.raises(
        HeaderError, match=f"extension fields have {len(data)} bytes, but the sum of their lengths is {len(data) + 1}"
    ):
        fields_of.decode_binary(data)


@pytest.mark.parametrize("data", [b"[]", b"7", b'"x"', b'{"a":[]}', b'{"a":{}}', b"{", b"", b'{"a":"\xff"}'])
def test_json_fields_that_are_no_strings_are_refused(data: bytes) -> None:
    with pytest.raises(HeaderError, match="extFields of a header must be a JSON object of strings"):
        fields_of.decode_json(data)


def test_numbers_booleans_and_null_in_json_are_taken_as_fastjson_takes_them() -> None:
    data = b'{"a":1,"b":-2.5,"c":true,"d":false,"e":null,"f":"text"}'
    assert fields_of.decode_json(data) == {"a": "1", "b": "-2.5", "c": "true", "d": "false", "f": "text"}
    assert fields_of.decode_json(b"null") == {}


def test_field_names_beyond_ascii_do_not_break_a_frame() -> None:
    fields = {"größe": "7", "topic": "t"}
    encoded = fields_of.encode_binary(fields)
    assert fields_of.decode_binary(encoded)["topic"] == "t"


@BOTH
def test_an_offset_without_a_header_is_missing(serialize_type: SerializeType) -> None:
    (command,) = FrameDecoder().feed(encode_request(33, opaque=1, serialize_type=serialize_type))
    assert command.ext_fields() == {}
    with pytest.raises(HeaderError, match="<offset> is null"):
        command.decode_header(ViewMessageRequestHeader)
