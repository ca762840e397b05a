"""A sent message is converted to properties, or is refused with an error text."""

import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.proxy.answers import CallRefused, refused
from rocketmq_broker.proxy.connections.caller import caller_of
from rocketmq_broker.proxy.messages.sent import SentMessages, type_of
from rocketmq_broker.proxy.producing.transactions import TransactionHandle
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.remoting.dispatcher import INTERNAL_ERROR

NOW_MS = 1_767_225_600_000
SENT = SentMessages((1_000, 5_000, 10_000), max_body_bytes=100)


def message(body: bytes = b"hello", user: dict[str, str] | None = None, **system: object) -> api.Message:
    properties = api.SystemProperties(**{"message_id": "id", **system})
    return api.Message(topic=api.Resource(name="orders"), body=body, user_properties=user, system_properties=properties)


def due(wait_ms: int) -> api.Message:
    sent = message()
    sent.system_properties.delivery_timestamp.FromMilliseconds(NOW_MS + wait_ms)
    return sent


def code_of(sent: api.Message) -> api.Code:
    with pytest.raises(CallRefused) as refusal:
        SENT.properties_of(sent, NOW_MS)
    return refusal.value.status.code


@pytest.mark.parametrize(("wait_ms", "level"), [(-5, None), (0, None), (1, "1"), (1_000, "1"), (1_001, "2"), (10_000, "3")])
def test_a_delivery_time_becomes_the_next_level_that_is_not_too_short(wait_ms: int, level: str | None) -> None:
    encoded = SENT.properties_of(due(wait_ms), NOW_MS).encode()
    assert props.find(encoded, props.DELAY_TIME_LEVEL) == level
    assert props.find(encoded, "TIMER_DELIVER_MS") == str(NOW_MS + wait_ms)


def test_what_the_broker_cannot_keep_is_refused_by_its_own_code() -> None:
    assert code_of(due(10_001)) == api.ILLEGAL_DELIVERY_TIME
    assert code_of(message(b"x" * 101)) == api.MESSAGE_BODY_TOO_LARGE
    assert code_of(message(message_id=" ")) == api.ILLEGAL_MESSAGE_ID
    assert code_of(message(tag="a|b")) == api.ILLEGAL_MESSAGE_TAG
    assert code_of(message(keys=["a", " "])) == api.ILLEGAL_MESSAGE_KEY
    assert code_of(message(message_group="g" * 64)) == api.ILLEGAL_MESSAGE_GROUP
    assert code_of(message(user={props.REAL_TOPIC: "RMQ_SYS_TRANS_HALF_TOPIC"})) == api.ILLEGAL_MESSAGE_PROPERTY_KEY
    assert code_of(message(b"")) == api.MESSAGE_BODY_EMPTY
    assert code_of(message(message_id="a\x02b")) == api.ILLEGAL_MESSAGE_ID
    assert code_of(message(tag="a\nb")) == api.ILLEGAL_MESSAGE_TAG
    assert code_of(message(keys=["a\x01b"])) == api.ILLEGAL_MESSAGE_KEY
    assert code_of(message(message_group="a\x7fb")) == api.ILLEGAL_MESSAGE_GROUP
    assert code_of(message(user={"a\x01b": "c"})) == api.ILLEGAL_MESSAGE_PROPERTY_KEY
    assert code_of(message(user={"a": "b\x02c"})) == api.ILLEGAL_MESSAGE_PROPERTY_KEY
    assert code_of(message(user={"": "c"})) == api.ILLEGAL_MESSAGE_PROPERTY_KEY
    assert code_of(message(user={"a": "x" * 33_000})) == api.MESSAGE_PROPERTIES_TOO_LARGE
    assert code_of(message(user={str(number): "x" for number in range(129)})) == api.MESSAGE_PROPERTIES_TOO_LARGE
    assert code_of(message(user={"a": "x" * 16_000}, tag="t" * 300, keys=["k" * 84])) == api.MESSAGE_PROPERTIES_TOO_LARGE


def test_what_is_just_small_enough_is_taken() -> None:
    group = "ü" * 31 + "g"
    encoded = SENT.properties_of(message(user={"a": "x" * 16_000}, tag="t" * 300, keys=["k" * 83], message_group=group), NOW_MS)
    assert props.find(encoded.encode(), "__SHARDINGKEY") == group


def test_a_transaction_waits_for_its_first_check_an_hour_at_most() -> None:
    sent = message(message_type=api.TRANSACTION)
    sent.system_properties.orphaned_transaction_recovery_duration.FromSeconds(3600)
    assert props.find(SENT.properties_of(sent, NOW_MS).encode(), props.CHECK_IMMUNITY_TIME_IN_SECONDS) == "3600"
    sent.system_properties.orphaned_transaction_recovery_duration.FromSeconds(3601)
    assert code_of(sent) == api.BAD_REQUEST


def test_a_transactional_message_is_neither_delayed_nor_of_a_group() -> None:
    with pytest.raises(CallRefused, match="neither a message group nor a delivery time"):
        type_of(message(message_type=api.TRANSACTION, message_group="g"))
    assert type_of(message(message_group="g")) == api.FIFO
    assert type_of(message(message_type=api.TRANSACTION)) == api.TRANSACTION
    with pytest.raises(CallRefused, match="LITE are not supported"):
        type_of(message(message_type=api.LITE))
    with pytest.raises(CallRefused, match="type 77"):
        type_of(message(message_type=77))


def test_a_transaction_id_is_read_as_it_was_written() -> None:
    handle = TransactionHandle(4711, 12)
    assert TransactionHandle.of(handle.transaction_id("a/b")) == handle


@pytest.mark.parametrize("text", ["", "a", "a/1", "a/b/c", "a/-1/1", "a/1/" + "9" * 20, "a/1/²"])
def test_no_other_text_is_a_transaction_id(text: str) -> None:
    with pytest.raises(CallRefused):
        TransactionHandle.of(text)


def test_a_signature_is_looked_at_only_where_accounts_are_needed() -> None:
    metadata = {"x-mq-client-id": "client", "authorization": "nonsense"}
    assert caller_of(metadata, ("127.0.0.1", 1), None).credentials is None
    with pytest.raises(CallRefused):
        caller_of(metadata, ("127.0.0.1", 1), lambda access_key: None)


def test_the_broker_s_refusals_keep_their_meaning() -> None:
    acl = "org.apache.rocketmq.acl.common.AclException: "
    assert refused(1, f"{acl}No default permission for topic:orders").status.code == api.FORBIDDEN
    assert refused(1, f"{acl}No accessKey is configured").status.code == api.UNAUTHORIZED
    assert refused(17, "no topic").status.code == api.TOPIC_NOT_FOUND
    assert refused(1, "no such thing", api.BAD_REQUEST).status.code == api.BAD_REQUEST
    assert refused(1, INTERNAL_ERROR, api.BAD_REQUEST).status.code == api.INTERNAL_SERVER_ERROR
    assert refused(99, None).status.message == "the broker answered with code 99"
