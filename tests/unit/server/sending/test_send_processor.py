"""Tests sending: requests as frames, and the stored records."""

import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from rocketmq_broker.message import properties, sysflag
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageResponseHeader
from rocketmq_broker.server.sending.send_processor import BATCHED_AT_ONCE, MAX_BATCHED
from rocketmq_broker.server.sending.sent_properties import MAX_KEYS, MAX_KEYS_OF_A_BATCH, MAX_PROPERTIES_OF_A_BATCH
from rocketmq_broker.transaction.errors import DelayedTransaction
from rocketmq_broker.transaction.transitions import half_properties
from tests.e2e.clients import SEND
from tests.unit.server.conftest import IDENTITY, START_MS, Desk, Wire

SENT = properties.encode({"KEYS": "k", "WAIT": "true", "TAGS": "created"}).decode()
V2 = msgspec.structs.replace(SEND, born_timestamp=START_MS - 5, flag=7, properties=SENT)


def v2(**changes: object) -> SendMessageRequestHeaderV2:
    return msgspec.structs.replace(V2, **changes)


def test_a_message_is_stored_as_it_was_sent(desk: Desk) -> None:
    wire = Wire("10.0.0.7:4242")
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, V2, b"body", wire)
    header = answer.decode_header(SendMessageResponseHeader)
    (record,) = desk.messages("orders")
    assert answer.code == ResponseCode.SUCCESS
    assert (header.queue_id, header.queue_offset) == (0, 0)
    assert header.msg_id == (IDENTITY.store_host + record.commit_log_offset.to_bytes(8, "big")).hex().upper()
    assert (record.body, record.flag, record.born_timestamp, record.store_timestamp) == (b"body", 7, START_MS - 5, START_MS)
    assert record.born_host == wire.born_host
    assert properties.decode(record.properties) == {"KEYS": "k", "TAGS": "created", "CLUSTER": "DefaultCluster"}


def test_the_answer_tells_region_and_trace_as_apaches_does(desk: Desk) -> None:
    fields = desk.ask(RequestCode.SEND_MESSAGE_V2, V2, b"body").ext_fields()
    assert (fields["MSG_REGION"], fields["TRACE_ON"]) == ("DefaultRegion", "true")


def test_long_and_short_names_and_both_serializers_store_the_same(desk: Desk) -> None:
    values = {name: getattr(V2, name) for name in V2.__struct_fields__}
    wire = Wire()
    for serialize_type in SerializeType:
        desk.request(wire, RequestCode.SEND_MESSAGE, SendMessageRequestHeader(**values), b"body", serialize_type=serialize_type)
        desk.request(wire, RequestCode.SEND_MESSAGE_V2, V2, b"body", serialize_type=serialize_type)
    assert [answer.code for answer in wire.answers] == [0, 0, 0, 0]
    assert [answer.serialize_type for answer in wire.answers] == [SerializeType.JSON] * 2 + [SerializeType.ROCKETMQ] * 2
    first, *others = [(record.body, record.properties, record.flag) for record in desk.messages("orders")]
    assert others == [first] * 3


def test_nothing_is_answered_before_it_is_durable(desk: Desk) -> None:
    desk.commit.is_held_up = True
    wire = Wire()
    desk.request(wire, RequestCode.SEND_MESSAGE_V2, V2, b"body")
    assert wire.answers == []
    assert desk.messages("orders") == []
    desk.commit.is_held_up = False
    desk.commit.settle()
    assert [answer.code for answer in wire.answers] == [ResponseCode.SUCCESS]


def test_a_one_way_message_is_stored_and_not_answered(desk: Desk) -> None:
    wire = Wire()
    desk.request(wire, RequestCode.SEND_MESSAGE_V2, V2, b"body", oneway=True)
    desk.request(wire, RequestCode.SEND_MESSAGE_V2, v2(topic="bad name"), b"body", oneway=True)
    assert wire.answers == []
    assert len(desk.messages("orders")) == 1


def test_a_message_without_a_queue_gets_one(desk: Desk) -> None:
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, v2(queue_id=-1), b"body")
    queue_id = answer.decode_header(SendMessageResponseHeader).queue_id
    assert len(desk.messages("orders", queue_id)) == 1


def test_a_queue_that_is_not_there_is_refused(desk: Desk) -> None:
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, v2(queue_id=4), b"body")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "request queueId[4] is illegal" in (answer.remark or "")


def test_an_unknown_topic_is_refused_where_it_may_not_come_into_being(make_desk: Callable[..., Desk]) -> None:
    answer = make_desk(auto_create=False).ask(RequestCode.SEND_MESSAGE_V2, V2, b"body")
    assert answer.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_body_over_the_limit_is_illegal_and_nothing_is_stored(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(max_message_size=1000)
    assert desk.ask(RequestCode.SEND_MESSAGE_V2, V2, bytes(1001)).code == ResponseCode.MESSAGE_ILLEGAL
    assert desk.ask(RequestCode.SEND_MESSAGE_V2, V2, bytes(1000)).code == ResponseCode.SUCCESS
    assert len(desk.messages("orders")) == 1


def test_properties_over_the_limit_are_illegal(desk: Desk) -> None:
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties="k\x01" + "x" * 32766), b"body")
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert desk.messages("orders") == []


def test_properties_leave_room_for_those_that_the_broker_adds(desk: Desk) -> None:
    most = "k\x01" + "x" * (properties.MAX_SENT_PROPERTIES_LENGTH - 2)
    assert desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties=most), b"body").code == ResponseCode.SUCCESS
    for code, header, body in (
        (RequestCode.SEND_MESSAGE_V2, v2(properties=most + "x"), b"body"),
        (RequestCode.SEND_BATCH_MESSAGE, v2(batch=True), batch(b"one", encoded=(most + "x").encode())),
    ):
        answer = desk.ask(code, header, body)
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
        assert "limit 30719 " in (answer.remark or "")
    assert len(desk.messages("orders")) == 1


@pytest.mark.parametrize("spare", [0, 10, 22, 23, 24])
def test_a_retry_that_fills_the_room_goes_without_the_cluster(desk: Desk, spare: int) -> None:
    encoded = "k\x01" + "x" * (properties.MAX_PROPERTIES_LENGTH - 2 - spare)
    for reconsume_times, topic in ((1, "%RETRY%g"), (16, "%DLQ%g")):
        retry = v2(topic="%RETRY%g", reconsume_times=reconsume_times, properties=encoded)
        assert desk.ask(RequestCode.SEND_MESSAGE_V2, retry, b"body").code == ResponseCode.SUCCESS
        (record,) = desk.messages(topic)
        assert record.get_property("CLUSTER") == ("DefaultCluster" if spare >= 23 else None)


def test_a_retry_without_room_for_its_delay_becomes_a_dead_letter(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A broker without this limit may have stored the message. A refusal would make the consumer retry the message forever."""
    encoded = "DELAY\x013\x02k\x01" + "x" * (properties.MAX_PROPERTIES_LENGTH - 30)
    retry = v2(topic="%RETRY%g", reconsume_times=1, properties=encoded)
    assert desk.ask(RequestCode.SEND_MESSAGE_V2, retry, b"body").code == ResponseCode.SUCCESS
    assert [record.body for record in desk.messages("%DLQ%g")] == [b"body"]
    assert "no room" in caplog.text


def test_a_message_that_begins_a_transaction_goes_to_the_half_messages(desk: Desk) -> None:
    encoded = properties.encode({"TRAN_MSG": "true", "PGROUP": "p"}).decode()
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties=encoded, sys_flag=4, queue_id=2), b"body")
    (begun,) = desk.half_messages.begun
    assert (begun.topic, begun.queue_id, begun.body) == (b"orders", 2, b"body")
    assert desk.half_messages.producer_groups == ["p"]
    header = answer.decode_header(SendMessageResponseHeader)
    assert (header.queue_id, header.queue_offset) == (2, 3)
    assert desk.messages("orders", 2) == []


def test_a_flag_that_claims_a_transaction_without_the_property_is_illegal(desk: Desk) -> None:
    assert desk.ask(RequestCode.SEND_MESSAGE_V2, v2(sys_flag=4), b"body").code == ResponseCode.MESSAGE_ILLEGAL


def test_a_delayed_message_is_delivered_when_its_level_says(desk: Desk) -> None:
    desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties="DELAY\x012", queue_id=3), b"body")
    desk.deliver_due(4999)
    assert desk.messages("orders", 3) == []
    desk.deliver_due(1)
    (record,) = desk.messages("orders", 3)
    assert record.store_timestamp == START_MS + 5000
    assert record.get_property("DELAY") == "2"
    assert desk.delay_offsets.get(2) == 1


@pytest.mark.parametrize(
    ("timer", "level"),
    [
        ({"TIMER_DELAY_SEC": "20"}, 4),
        ({"TIMER_DELAY_MS": "5000"}, 2),
        ({"TIMER_DELAY_MS": "5001"}, 3),
        ({"TIMER_DELIVER_MS": str(START_MS + 3_600_001)}, 18),
        ({"TIMER_DELAY_SEC": "20", "DELAY": "1"}, 1),
    ],
)
def test_a_message_that_names_its_time_as_clients_of_rocketmq_5_do_is_delayed(
    desk: Desk, timer: dict[str, str], level: int
) -> None:
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties=properties.encode(timer).decode(), queue_id=3), b"body")
    assert answer.code == ResponseCode.SUCCESS
    assert desk.messages("orders", 3) == []
    desk.deliver_due(desk.store.config.delay_levels_ms[level - 1])
    (record,) = desk.messages("orders", 3)
    assert record.get_property("DELAY") == str(level)


@pytest.mark.parametrize("timer", [{"TIMER_DELAY_MS": "0"}, {"TIMER_DELIVER_MS": str(START_MS)}, {"note": "TIMER_DELAY"}])
def test_a_message_whose_time_is_there_is_delivered_at_once(desk: Desk, timer: dict[str, str]) -> None:
    desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties=properties.encode(timer).decode()), b"body")
    assert len(desk.messages("orders")) == 1


@pytest.mark.parametrize(
    ("sent", "remark"),
    [
        (
            {"TIMER_DELAY_SEC": "7201"},
            "delay too long: 7201000 ms, but the longest delay level (messageDelayLevel) is 7200000 ms",
        ),
        ({"TIMER_DELAY_SEC": "soon"}, "the property TIMER_DELAY_SEC must be a number of s, not 'soon'"),
        ({"TIMER_DELIVER_MS": "9" * 19}, f"the property TIMER_DELIVER_MS must be a number of ms, not '{'9' * 19}'"),
        ({"TIMER_DEL_UNIQKEY": "id"}, "this broker does not support recalling delayed messages (property TIMER_DEL_UNIQKEY)"),
    ],
)
def test_a_time_that_cannot_be_kept_is_refused_in_words(desk: Desk, sent: dict[str, str], remark: str) -> None:
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties=properties.encode(sent).decode()), b"body")
    assert (answer.code, answer.remark) == (ResponseCode.MESSAGE_ILLEGAL, remark)
    assert desk.messages("orders") == []


def test_neither_a_transaction_nor_a_batch_takes_a_time(desk: Desk) -> None:
    half = v2(properties="TRAN_MSG\x01true\x02TIMER_DELAY_SEC\x0120")
    desk.ask(RequestCode.SEND_MESSAGE_V2, half, b"body")
    (begun,) = desk.half_messages.begun
    with pytest.raises(DelayedTransaction):
        half_properties(begun.properties, b"orders", 0, "p")
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True), batch(b"one", encoded=b"TIMER_DELAY_SEC\x0120"))
    assert (answer.code, answer.remark) == (ResponseCode.MESSAGE_ILLEGAL, "a batch must not contain delayed messages")


@pytest.mark.parametrize(
    ("sent", "is_kept"), [({"DELAY": "1", "WAIT": "true"}, True), ({"DELAY": "0", "WAIT": "true"}, False), ({"WAIT": "x"}, False)]
)
def test_what_a_message_says_of_waiting_is_kept_where_apaches_broker_keeps_it(
    desk: Desk, sent: dict[str, str], is_kept: bool
) -> None:
    desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties=properties.encode(sent).decode()), b"body")
    desk.deliver_due(1000)
    (record,) = desk.messages("orders")
    assert (record.get_property("WAIT") == "true") is is_kept


def test_a_half_message_keeps_what_it_says_of_waiting(desk: Desk) -> None:
    desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties="TRAN_MSG\x01true\x02WAIT\x01true"), b"body")
    (begun,) = desk.half_messages.begun
    assert begun.properties == b"TRAN_MSG\x01true\x02WAIT\x01true\x02CLUSTER\x01DefaultCluster"


def test_the_messages_of_a_topic_with_multiple_tags_say_so(desk: Desk) -> None:
    desk.topics.update(TopicConfig("orders", 4, 4, topic_filter_type="MULTI_TAG"))
    desk.ask(RequestCode.SEND_MESSAGE_V2, v2(sys_flag=sysflag.COMPRESSED), b"body")
    desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True), batch(b"one"))
    flags = [record.sys_flag for record in desk.messages("orders")]
    assert flags == [sysflag.COMPRESSED | sysflag.MULTI_TAGS, sysflag.MULTI_TAGS]


def batch(*bodies: bytes, encoded: bytes = b"KEYS\x01k") -> bytes:
    return b"".join(
        struct.pack(">iiiii", 22 + len(body) + len(encoded), 0, 0, 0, len(body))
        + body
        + struct.pack(">h", len(encoded))
        + encoded
        for body in bodies
    )


def test_what_a_batch_as_a_whole_asks_for_counts_for_its_messages(desk: Desk) -> None:
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, properties="TRAN_MSG\x01true"), batch(b"one"))
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert desk.messages("orders") == []


@pytest.mark.parametrize("count", [3, 1000], ids=["at once", "in steps"])
def test_a_batch_is_stored_as_single_messages_and_answered_once(desk: Desk, count: int) -> None:
    bodies = [str(number).encode() for number in range(count)]
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True), batch(*bodies))
    header = answer.decode_header(SendMessageResponseHeader)
    records = desk.messages("orders")
    assert [record.body for record in records] == bodies
    assert [int(part[16:], 16) for part in header.msg_id.split(",")] == [record.commit_log_offset for record in records]
    assert header.queue_offset == 0
    assert desk.statistics.messages_put == count
    counted = desk.statistics.traffic.normal[b"orders"]
    assert (counted.messages, counted.size) == (count, sum(record.size for record in records))


class StepByStep(Wire):
    """A connection whose turn ends after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.postponed: list[list[RemotingCommand]] = []
        self._asked = 0

    @property
    def must_rest(self) -> bool:  # type: ignore[override]
        self._asked += 1
        return self._asked % 2 == 0

    def postpone(self, requests: list[RemotingCommand]) -> None:
        self.postponed.append(requests)


def test_what_others_send_between_the_steps_of_a_long_batch_keeps_the_order_of_those_who_wait(desk: Desk) -> None:
    positions: list[int] = []
    after_durable = desk.commit.after_durable

    def noted(position: int, *rest: Any) -> None:
        positions.append(position)
        after_durable(position, *rest)

    desk.commit.after_durable = noted  # type: ignore[method-assign]
    wire = StepByStep()
    desk.request(wire, RequestCode.SEND_BATCH_MESSAGE, v2(batch=True), batch(*[b"x" * 100] * (2 * BATCHED_AT_ONCE)))
    while wire.postponed:
        desk.request(Wire(), RequestCode.SEND_MESSAGE_V2, V2, b"of another")
        desk.dispatcher.on_requests(wire, wire.postponed.pop())
    assert len(positions) > 3
    assert positions == sorted(positions)


def test_a_long_batch_that_is_torn_at_its_end_is_refused_as_a_whole(desk: Desk) -> None:
    body = batch(*(str(number).encode() for number in range(1000)))
    assert desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True), body[:-1]).code == ResponseCode.MESSAGE_ILLEGAL
    assert desk.messages("orders") == []


def test_a_batch_of_too_many_messages_is_refused_as_a_whole(desk: Desk) -> None:
    body = batch(*[b""] * (MAX_BATCHED + 1))
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True), body)
    assert (answer.code, answer.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        f"too many messages in the batch: limit {MAX_BATCHED}; send several batches",
    )
    assert desk.messages("orders") == []


def test_each_message_of_a_batch_has_the_properties_of_the_batch_that_it_has_not_itself(desk: Desk) -> None:
    own = [b"UNIQ_KEY\x011\x02CLUSTER\x01theirs\x02", b"", b"colour\x01red", b"KEYS\x01k\x02WAIT\x01false"]
    body = b"".join(batch(b"body", encoded=encoded) for encoded in own)
    desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, properties="UNIQ_KEY\x01batch\x02WAIT\x01true\x02n\x01\x02"), body)
    of_batch = {"WAIT": "true", "CLUSTER": "DefaultCluster"}
    assert [properties.decode(record.properties) for record in desk.messages("orders")] == [
        {"UNIQ_KEY": "1", **of_batch},
        {"UNIQ_KEY": "batch", **of_batch},
        {"colour": "red", "UNIQ_KEY": "batch", **of_batch},
        {"KEYS": "k", "UNIQ_KEY": "batch", **of_batch, "WAIT": "false"},
    ]


@pytest.mark.parametrize(
    ("topic", "encoded"),
    [("orders", b"DELAY\x012"), ("orders", b"TRAN_MSG\x01true"), ("%RETRY%g", b""), ("orders", b"k\x01" + b"x" * 32760)],
)
def test_what_cannot_be_in_a_batch_refuses_all_of_it(desk: Desk, topic: str, encoded: bytes) -> None:
    body = batch(b"one") + batch(b"two", encoded=encoded)
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, topic=topic), body)
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert desk.messages("orders") == []


def test_a_retried_message_sent_too_often_becomes_a_dead_letter(desk: Desk) -> None:
    retry = v2(topic="%RETRY%g", reconsume_times=16)
    assert desk.ask(RequestCode.SEND_MESSAGE_V2, retry, b"body").code == ResponseCode.SUCCESS
    assert len(desk.messages("%DLQ%g")) == 1
    few = v2(topic="%RETRY%g", reconsume_times=1, max_reconsume_times=2)
    desk.ask(RequestCode.SEND_MESSAGE_V2, few, b"body")
    assert len(desk.messages("%RETRY%g")) == 1


def keys(count: int) -> bytes:
    return b"KEYS\x01" + b" ".join([b"k"] * count)


def test_a_message_has_so_many_keys_and_no_more(desk: Desk) -> None:
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties=keys(MAX_KEYS).decode()), b"one")
    assert answer.code == ResponseCode.SUCCESS
    answer = desk.ask(RequestCode.SEND_MESSAGE_V2, v2(properties=keys(MAX_KEYS + 1).decode()), b"two")
    assert (answer.code, answer.remark) == (ResponseCode.MESSAGE_ILLEGAL, "too many keys: 1001, limit 1000")
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True), batch(b"three", encoded=keys(MAX_KEYS + 1)))
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert [record.body for record in desk.messages("orders")] == [b"one"]


def test_the_keys_of_a_batch_as_a_whole_do_not_become_millions(desk: Desk) -> None:
    body = batch(*[b""] * (MAX_KEYS_OF_A_BATCH // MAX_KEYS + 1), encoded=b"")
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, properties=keys(MAX_KEYS).decode()), body)
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert "too many keys in the batch: limit 262144; send several batches" in (answer.remark or "")
    assert desk.messages("orders") == []


def test_the_properties_of_a_batch_as_a_whole_do_not_make_a_short_request_a_long_log(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(max_message_size=100_000)
    before = desk.store.written_position
    of_the_batch = "colour\x01" + "x" * 999
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, properties=of_the_batch), batch(*[b""] * 100))
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert "add 100940 bytes to the first 98 messages, limit 100000; send several batches" in (answer.remark or "")
    assert desk.store.written_position == before
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, properties=of_the_batch), batch(*[b""] * 97))
    assert answer.code == ResponseCode.SUCCESS
    exactly_all = "colour\x01" + "x" * 969  # a hundred times 1,000 bytes, with the cluster
    assert desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, properties=exactly_all), batch(*[b""] * 100)).remark is None


def test_what_apaches_clients_give_a_batch_as_a_whole_fits_the_longest_batch(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(max_message_size=100_000)
    of_the_batch = f"UNIQ_KEY\x01{'0' * 32}\x02WAIT\x01true\x02INSTANCE_ID\x01tenant"
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, properties=of_the_batch), batch(*[b""] * 3500))
    assert answer.code == ResponseCode.SUCCESS


def test_a_batch_as_a_whole_has_few_properties(desk: Desk) -> None:
    many = "\x02".join(f"{number}\x01v" for number in range(MAX_PROPERTIES_OF_A_BATCH))
    answer = desk.ask(RequestCode.SEND_BATCH_MESSAGE, v2(batch=True, properties=many), batch(b"one"))
    assert (answer.code, answer.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        "too many batch properties: 65, limit 64; set them on the messages instead",
    )
