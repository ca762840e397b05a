"""Tests the send-back of messages that a consumer could not process."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from rocketmq_broker.message import properties, topics
from rocketmq_broker.message.configs import SubscriptionGroupConfig
from rocketmq_broker.message.dead_letters import RETRIES
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record, host_bytes
from rocketmq_broker.message.sysflag import STORE_HOST_V6
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, ConsumeType, SubscriptionData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rocketmq_broker.server.schedule.delay_levels import Place, waiting_place
from rocketmq_broker.store import MessageStore
from rocketmq_broker.transaction.messages.half_message import RESUMED_FROM
from rocketmq_broker.transaction.transitions import half_properties
from tests.unit.server.conftest import START_MS, Desk, Wire
from tests.unit.store.conftest import append


def stored(desk: Desk, reconsume_times: int = 0) -> Record:
    own = properties.encode({"UNIQ_KEY": "id", "TAGS": "created"})
    fields = {"flag": 3, "sys_flag": 8, "born_timestamp": START_MS - 9, "reconsume_times": reconsume_times}
    append(desk.store, queue_id=1, properties=own, **fields)
    desk.commit.settle()
    return desk.messages("orders", 1)[-1]


def back(record: Record, **changes: object) -> ConsumerSendMsgBackRequestHeader:
    return ConsumerSendMsgBackRequestHeader(**{"offset": record.commit_log_offset, "group": "g", "delay_level": 0, **changes})


def send_back(desk: Desk, header: ConsumerSendMsgBackRequestHeader) -> ResponseCode:
    """Sends a message back after the group has committed an offset of the topic. Returns the response code."""
    desk.offsets.commit(header.group, "orders", 1, 0)
    return ResponseCode(desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header).code)


def test_the_first_retry_comes_after_ten_seconds_with_all_the_message_had(desk: Desk) -> None:
    first = stored(desk)
    assert send_back(desk, back(first)) is ResponseCode.SUCCESS
    desk.deliver_due(9_999)
    assert desk.messages("%RETRY%g") == []
    desk.deliver_due(1)
    (record,) = desk.messages("%RETRY%g")
    assert (record.body, record.flag, record.sys_flag, record.born_timestamp) == (b"body", 3, 8, START_MS - 9)
    assert record.reconsume_times == 1
    assert properties.decode(record.properties) == {
        "UNIQ_KEY": "id",
        "TAGS": "created",
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": offset_message_id(first.store_host, first.commit_log_offset),
        "WAIT": "false",
        "DELAY": "3",
        "REAL_TOPIC": "%RETRY%g",
        "REAL_QID": "0",
    }


def test_a_message_tried_again_and_again_names_the_first_attempt(desk: Desk) -> None:
    first = stored(desk)
    send_back(desk, back(first, delay_level=1))
    desk.deliver_due(1000)
    send_back(desk, back(desk.messages("%RETRY%g")[0], delay_level=1))
    desk.deliver_due(1000)
    names = [record.get_property("ORIGIN_MESSAGE_ID") for record in desk.messages("%RETRY%g")]
    assert names == [offset_message_id(first.store_host, first.commit_log_offset)] * 2


def test_it_is_counted_for_the_topic_that_the_first_attempt_came_from(desk: Desk) -> None:
    send_back(desk, back(stored(desk)))
    desk.deliver_due(10_000)
    send_back(desk, back(desk.messages("%RETRY%g")[-1]))
    desk.statistics.sample_flows(desk.clock())
    report = desk.statistics.flows.report("SNDBCK_PUT_NUMS", "orders@g")
    assert report is not None
    assert report.minute.amount == 2
    assert desk.statistics.flows.report("SNDBCK_PUT_NUMS", "%RETRY%g@g") is None


def test_each_further_retry_waits_a_level_longer(desk: Desk) -> None:
    send_back(desk, back(stored(desk, reconsume_times=2)))
    assert len(desk.messages("SCHEDULE_TOPIC_XXXX", 4)) == 1


def test_a_message_tried_too_often_becomes_a_dead_letter(desk: Desk) -> None:
    send_back(desk, back(stored(desk, reconsume_times=16)))
    (record,) = desk.messages("%DLQ%g")
    assert record.reconsume_times == 17
    assert record.get_property("DELAY") == "0"


def test_the_consumers_own_limit_counts(desk: Desk) -> None:
    send_back(desk, back(stored(desk, reconsume_times=1), max_reconsume_times=1))
    assert len(desk.messages("%DLQ%g")) == 1


def full(desk: Desk, room: int) -> Record:
    """Stores a message whose properties leave only `room` bytes.

    Only a broker with a higher limit for sent properties accepts such a message from a producer.
    """
    encoded = properties.encode({"UNIQ_KEY": "id", "k": ""})
    encoded += b"x" * (properties.MAX_PROPERTIES_LENGTH - room - len(encoded))
    append(desk.store, queue_id=1, properties=encoded)
    desk.commit.settle()
    return desk.messages("orders", 1)[-1]


@pytest.mark.parametrize(
    ("room", "kept"),
    [(0, set()), (20, {"RETRY_TOPIC"}), (90, {"RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "WAIT", "DELAY"})],
)
def test_a_message_without_room_for_its_redelivery_becomes_a_dead_letter(
    desk: Desk, caplog: pytest.LogCaptureFixture, room: int, kept: set[str]
) -> None:
    """The message is not refused, because the consumer would then receive it forever and its queue would be blocked."""
    assert send_back(desk, back(full(desk, room))) is ResponseCode.SUCCESS
    (record,) = desk.messages("%DLQ%g")
    assert (record.body, record.reconsume_times) == (b"body", 1)
    assert set(properties.decode(record.properties)) == {"UNIQ_KEY", "k"} | kept
    assert "a message of orders is stored as a dead letter of group g instead of being retried: " in caplog.text
    assert f"{properties.MAX_PROPERTIES_LENGTH - room} bytes of properties" in caplog.text


def test_an_offset_without_a_message_is_refused(desk: Desk) -> None:
    record = stored(desk)
    answer = desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(record, offset=record.commit_log_offset + 1))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "look message by offset failed" in (answer.remark or "")


def test_a_group_without_retry_queues_drops_the_message(desk: Desk) -> None:
    desk.groups.update(SubscriptionGroupConfig("g", retry_queue_nums=0))
    assert send_back(desk, back(stored(desk))) is ResponseCode.SUCCESS
    assert desk.topics.get("%RETRY%g") is None


def test_the_number_of_attempts_stays_one_that_a_record_can_hold(desk: Desk) -> None:
    record = stored(desk, reconsume_times=(1 << 31) - 1)
    assert send_back(desk, back(record)) is ResponseCode.SUCCESS
    assert [record.reconsume_times for record in desk.messages("%DLQ%g")] == [(1 << 31) - 1]


def test_a_message_stored_while_the_broker_had_an_ipv6_address_is_tried_again(make_desk: Callable[..., Desk]) -> None:
    before = make_desk()
    before.store.close()
    store = MessageStore.open(replace(before.store.config, store_host=host_bytes("::1", 10911)))
    append(store, sys_flag=STORE_HOST_V6)
    store.close()
    desk = make_desk()

    assert send_back(desk, back(desk.messages("orders")[0], delay_level=-1)) is ResponseCode.SUCCESS

    assert [record.body for record in desk.messages("%DLQ%g")] == [b"body"]


def test_a_message_larger_than_is_allowed_by_now_is_tried_again(desk: Desk, make_desk: Callable[..., Desk]) -> None:
    record = stored(desk)
    desk.store.close()
    assert send_back(make_desk(max_message_size=1), back(record)) is ResponseCode.SUCCESS


def subscribed(group: str, *topics: str, consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY) -> list[ConsumerData]:
    return [
        ConsumerData(
            group_name=group,
            consume_type=consume_type,
            subscription_data_set=[SubscriptionData(topic=topic) for topic in topics],
        )
    ]


@pytest.mark.parametrize(
    "consumers",
    [subscribed("g", "orders"), subscribed("g", "others", "orders"), subscribed("g", consume_type=ConsumeType.CONSUME_ACTIVELY)],
)
def test_a_group_sends_back_what_it_may_have_got_though_it_has_no_offsets_yet(desk: Desk, consumers: list[ConsumerData]) -> None:
    desk.heartbeat(Wire(), consumers=consumers)
    assert desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(stored(desk))).code == ResponseCode.SUCCESS
    assert len(desk.messages("SCHEDULE_TOPIC_XXXX", 2)) == 1


def test_a_group_sends_back_what_it_got_to_try_again_and_its_dead_letters(desk: Desk) -> None:
    send_back(desk, back(stored(desk), delay_level=1))
    desk.deliver_due(1000)
    desk.offsets.remove_group("g")
    (again,) = desk.messages("%RETRY%g")
    assert desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(again, delay_level=-1)).code == ResponseCode.SUCCESS
    (dead,) = desk.messages("%DLQ%g")
    assert desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(dead)).code == ResponseCode.SUCCESS


@pytest.mark.parametrize("consumers", [[], subscribed("g", "others"), subscribed("another", "orders")])
def test_a_group_cannot_send_back_what_it_cannot_have_got(desk: Desk, consumers: list[ConsumerData]) -> None:
    desk.heartbeat(Wire(), consumers=consumers)
    answer = desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(stored(desk)))
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "no subscription to topic[orders], and no offsets in it" in (answer.remark or "")
    assert desk.messages("SCHEDULE_TOPIC_XXXX", 2) == []


@pytest.mark.parametrize("topic", ["RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"])
def test_nobody_sends_back_what_the_broker_keeps_for_itself(desk: Desk, topic: str) -> None:
    desk.heartbeat(Wire(), consumers=subscribed("g", topic))
    append(desk.store, b"undecided", topic=topic.encode())
    desk.commit.settle()
    answer = desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(desk.messages(topic)[0]))
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "only the broker consumes" in (answer.remark or "")


def test_nobody_sends_back_as_a_group_of_the_brokers(desk: Desk) -> None:
    answer = desk.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back(stored(desk), group="CID_RMQ_SYS_TRANS"))
    assert answer.code == ResponseCode.NO_PERMISSION


def test_the_room_that_is_kept_at_the_send_holds_all_that_brokers_and_consumers_add() -> None:
    topic, group, number = "t" * topics.MAX_TOPIC_LENGTH, "g" * topics.MAX_GROUP_LENGTH, str((1 << 63) - 1)
    encoded = b"k\x01" + b"x" * (properties.MAX_SENT_PROPERTIES_LENGTH - 2)
    encoded = half_properties(encoded, topic.encode(), topics.MAX_QUEUES, group)
    added = {
        properties.CLUSTER: group,
        properties.TRANSACTION_CHECK_TIMES: number,
        properties.TRANSACTION_PREPARED_QUEUE_OFFSET: number,
        RESUMED_FROM: number,
        properties.RETRY_TOPIC: topic,
        properties.ORIGIN_MESSAGE_ID: "0" * 56,
        properties.WAIT_STORE_MSG_OK: "false",
        properties.FIRST_POP_TIME: number,
        RETRIES: number,
        # What Apache's consumers leave in a message that they send again themselves; POP_CK names topic, broker and queue.
        properties.MIN_OFFSET: number,
        properties.MAX_OFFSET: number,
        properties.CONSUME_START_TIME: number,
        properties.RECONSUME_TIME: number,
        properties.MAX_RECONSUME_TIMES: number,
        "POP_CK": group,
    }
    for name, value in added.items():
        encoded = properties.put(encoded, name, value)
    place = waiting_place(Place(topic.encode(), topics.MAX_QUEUES, encoded), (1 << 31) - 1, (1 << 31) - 1)
    assert len(place.properties) <= properties.MAX_PROPERTIES_LENGTH
