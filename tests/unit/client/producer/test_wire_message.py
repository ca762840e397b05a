"""Tests the preparation of messages for the wire."""

import struct
import zlib

import pytest

from rocketmq_broker.client import MessageRefused
from rocketmq_broker.client.producer.wire_message import MAX_MESSAGE_SIZE, check_message, to_wire, to_wire_batch, with_unique_id
from rocketmq_broker.message import Message, properties, sysflag


def test_a_long_body_is_compressed_and_says_so() -> None:
    wire = to_wire(Message.of("orders", b"a" * 5000))
    assert zlib.decompress(wire.body) == b"a" * 5000
    assert wire.sys_flag == sysflag.COMPRESSED | sysflag.COMPRESSION_ZLIB


def test_a_short_body_stays_as_it_is() -> None:
    wire = to_wire(Message.of("orders", b"a" * 4096))
    assert (wire.body, wire.sys_flag) == (b"a" * 4096, 0)


def test_a_body_that_compression_makes_longer_stays_as_it_is() -> None:
    body = bytes(value % 251 for value in range(20))
    wire = to_wire(Message.of("orders", body), compress_over=10)
    assert (wire.body, wire.sys_flag) == (body, 0)


def test_a_half_message_is_marked_in_the_sys_flag() -> None:
    half = Message.of("orders", b"x").with_properties({properties.TRANSACTION_PREPARED: "true"})
    assert to_wire(half).sys_flag == sysflag.TRANSACTION_PREPARED_TYPE


def test_an_id_that_is_there_stays_unless_it_is_to_be_replaced() -> None:
    first = with_unique_id(Message.of("orders", b"x"), "ONE")
    assert with_unique_id(first, "TWO").transaction_id == "ONE"
    assert with_unique_id(first, "TWO", replace=True).transaction_id == "TWO"


def test_attempts_travel_in_the_header_only_for_retry_topics() -> None:
    counted = {properties.RECONSUME_TIME: "3", properties.MAX_RECONSUME_TIMES: "16"}
    retried = to_wire(Message(topic="%RETRY%group", body=b"x", properties=counted))
    assert (retried.reconsume_times, retried.max_reconsume_times, retried.properties) == (3, 16, "")
    plain = to_wire(Message(topic="orders", body=b"x", properties=counted))
    assert (plain.reconsume_times, plain.max_reconsume_times) == (0, None)
    assert properties.RECONSUME_TIME in plain.properties


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Message.of("orders", b""), "must not be empty"),
        (Message.of("orders", bytes(MAX_MESSAGE_SIZE + 1)), "at most 4194304"),
        (Message.of("", b"x"), "blank"),
        (Message.of("no spaces", b"x"), r"topic 'no spaces': .*illegal characters"),
        (Message.of("RMQ_SYS_TRANS_HALF_TOPIC", b"x"), "reserved for the broker"),
    ],
)
def test_what_no_broker_would_take_is_refused_before_it_is_sent(message: Message, why: str) -> None:
    with pytest.raises(MessageRefused, match=why):
        check_message(message)


def test_properties_that_are_too_long_are_refused() -> None:
    """The properties that the broker adds for a redelivery must fit, too. A consumer's own retry already has some of them."""
    long = {"long": "v" * (properties.MAX_SENT_PROPERTIES_LENGTH - 4)}
    with pytest.raises(MessageRefused, match="message properties too long: 30720 bytes, at most 30719"):
        to_wire(Message.of("orders", b"x", user_properties=long))
    with pytest.raises(MessageRefused, match="at most 30719"):
        to_wire_batch([Message.of("orders", b"x", user_properties=long)])
    assert len(to_wire(Message.of("%RETRY%group", b"x", user_properties=long)).properties) == 30720
    with pytest.raises(MessageRefused, match="at most 32767"):
        to_wire(Message.of("%RETRY%group", b"x", user_properties={"long": "v" * 33000}))


def test_a_property_with_a_separator_is_refused() -> None:
    with pytest.raises(MessageRefused, match="must not contain"):
        to_wire(Message.of("orders", b"x", user_properties={"bad": "a\x01b"}))


def test_a_batch_is_its_messages_one_after_the_other() -> None:
    messages = [with_unique_id(Message.of("orders", body, flag=7), name) for body, name in ((b"one", "A"), (b"three", "B"))]
    batch = to_wire_batch(messages)
    assert (batch.topic, batch.unique_id, batch.is_batch) == ("orders", "A,B", True)
    size, _, _, flag, body_length = struct.unpack_from(">iiiii", batch.body)
    assert (flag, batch.body[20 : 20 + body_length]) == (7, b"one")
    (properties_length,) = struct.unpack_from(">H", batch.body, 20 + body_length)
    assert size == 22 + body_length + properties_length
    assert batch.body[size + 20 : size + 25] == b"three"


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "at least one"),
        ([Message.of("a", b"x"), Message.of("b", b"x")], "the same topic"),
        ([Message.of("a", b"x", delay_time_level=1)], "must not contain delayed"),
        ([Message.of("%RETRY%a", b"x")], "does not accept batches"),
        ([Message.of("a", bytes(3_000_000)), Message.of("a", bytes(3_000_000))], "smaller batches"),
    ],
)
def test_a_batch_that_cannot_be_stored_as_one_is_refused(messages: list[Message], why: str) -> None:
    with pytest.raises(MessageRefused, match=why):
        to_wire_batch(messages)
