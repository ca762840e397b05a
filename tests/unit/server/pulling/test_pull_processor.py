"""Tests pull requests with an immediate or a later response."""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec
import pytest

from rocketmq_broker.message import properties
from rocketmq_broker.message.configs import SubscriptionGroupConfig, TopicConfig
from rocketmq_broker.message.record import decode_records
from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, MessageModel, SubscriptionData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.store.log.segments import Segments
from tests.unit.server.conftest import PULL, Desk, Wire
from tests.unit.store.conftest import append


def pull(**changes: object) -> PullMessageRequestHeader:
    return msgspec.structs.replace(PULL, **{"sys_flag": pull_sysflag.SUBSCRIPTION, "subscription": "*", **changes})


def put(desk: Desk, *tags: str) -> None:
    for tag in tags:
        append(desk.store, tag.encode(), properties=properties.encode({"TAGS": tag}))
    desk.commit.settle()


def bodies(answer: RemotingCommand) -> list[bytes]:
    return [record.body for record in decode_records(answer.body)]


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.topics.update(TopicConfig("orders", 4, 4))
    return desk


def test_a_pull_gets_messages_and_where_to_go_on(desk: Desk) -> None:
    put(desk, "A", "B")
    answer = desk.ask(RequestCode.PULL_MESSAGE, pull())
    header = answer.decode_header(PullMessageResponseHeader)
    assert (answer.code, answer.remark, bodies(answer)) == (ResponseCode.SUCCESS, "FOUND", [b"A", b"B"])
    assert (header.next_begin_offset, header.min_offset, header.max_offset) == (2, 0, 2)
    assert header.suggest_which_broker_id == 0


def test_a_lite_pull_of_rocketmq_5_is_a_pull(desk: Desk) -> None:
    put(desk, "A", "B")
    answer = desk.ask(RequestCode.LITE_PULL_MESSAGE, pull(queue_offset=1))
    assert (answer.code, bodies(answer)) == (ResponseCode.SUCCESS, [b"B"])


def test_a_pull_gets_no_more_than_it_asks_for(desk: Desk) -> None:
    put(desk, "A", "B", "C")
    answer = desk.ask(RequestCode.PULL_MESSAGE, pull(max_msg_nums=2, queue_offset=1))
    assert bodies(answer) == [b"B", b"C"]


def test_only_wanted_tags_come(desk: Desk) -> None:
    put(desk, "A", "B", "C")
    answer = desk.ask(RequestCode.PULL_MESSAGE, pull(subscription="A || C"))
    assert bodies(answer) == [b"A", b"C"]


@pytest.mark.parametrize(
    ("offset", "code", "remark"),
    [
        (2, ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE"),
        (3, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY"),
        (-1, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL"),
    ],
)
def test_an_offset_without_a_message_is_said_to_be_so(desk: Desk, offset: int, code: ResponseCode, remark: str) -> None:
    put(desk, "A", "B")
    answer = desk.ask(RequestCode.PULL_MESSAGE, pull(queue_offset=offset))
    assert (answer.code, answer.remark) == (code, remark)


def test_an_empty_queue_has_nothing_at_0_and_moved_offsets_elsewhere(desk: Desk) -> None:
    assert desk.ask(RequestCode.PULL_MESSAGE, pull()).code == ResponseCode.PULL_NOT_FOUND
    assert desk.ask(RequestCode.PULL_MESSAGE, pull(queue_offset=5)).code == ResponseCode.PULL_OFFSET_MOVED


def test_a_pull_in_front_of_a_lost_piece_of_its_queue_goes_on_behind_it_and_is_not_held(desk: Desk) -> None:
    put(desk, "A", "B")
    desk.store.flush()
    (file,) = (desk.store.config.consume_queue_directory / "orders" / "0").iterdir()
    file.write_bytes(b"")
    answer = desk.ask(RequestCode.PULL_MESSAGE, waiting())
    assert (answer.code, answer.remark) == (ResponseCode.PULL_NOT_FOUND, "OFFSET_FOUND_NULL")
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 2


def test_messages_that_do_not_match_are_skipped_at_once(desk: Desk) -> None:
    put(desk, "A", "B")
    answer = desk.ask(RequestCode.PULL_MESSAGE, pull(subscription="C"))
    assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 2


def waiting(**changes: object) -> PullMessageRequestHeader:
    return pull(sys_flag=pull_sysflag.SUBSCRIPTION | pull_sysflag.SUSPEND, **{"suspend_timeout_millis": 15_000, **changes})


def test_a_pull_that_may_wait_is_answered_when_a_message_arrives(desk: Desk) -> None:
    wire = Wire()
    desk.request(wire, RequestCode.PULL_MESSAGE, waiting(), opaque=77)
    assert wire.answers == []
    put(desk, "A")
    (answer,) = wire.answers
    assert (answer.opaque, answer.code, bodies(answer)) == (77, ResponseCode.SUCCESS, [b"A"])


def test_a_pull_that_waited_long_enough_learns_that_there_is_nothing(desk: Desk) -> None:
    wire = Wire()
    desk.request(wire, RequestCode.PULL_MESSAGE, waiting(subscription="B"))
    put(desk, "A")
    desk.clock.now_ms += 14_999
    desk.pulls.answer_overdue()
    assert wire.answers == []
    desk.clock.now_ms += 101
    desk.pulls.answer_overdue()
    (answer,) = wire.answers
    assert answer.code == ResponseCode.PULL_NOT_FOUND
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 1


async def rings(alarm: Alarm) -> bool:
    """Returns whether the alarm has rung since the last call."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            await alarm.wait(None)
            return True
    return False


async def test_a_pull_that_waits_less_long_than_all_others_wakes_the_timer(desk: Desk) -> None:
    assert desk.pulls.answer_overdue() is None
    desk.request(Wire(), RequestCode.PULL_MESSAGE, waiting(suspend_timeout_millis=15_000))
    assert await rings(desk.pulls.alarm)
    assert desk.pulls.answer_overdue() == 15
    desk.clock.now_ms += 50
    desk.request(Wire(), RequestCode.PULL_MESSAGE, waiting(suspend_timeout_millis=15_000))
    assert not await rings(desk.pulls.alarm)
    desk.request(Wire(), RequestCode.PULL_MESSAGE, waiting(suspend_timeout_millis=1000))
    assert await rings(desk.pulls.alarm)
    assert desk.pulls.answer_overdue() == 1.05


def test_a_pull_commits_the_offset_it_brings(desk: Desk) -> None:
    desk.ask(RequestCode.PULL_MESSAGE, pull(sys_flag=pull_sysflag.SUBSCRIPTION | pull_sysflag.COMMIT_OFFSET, commit_offset=7))
    assert desk.offsets.get("g", "orders", 0) == 7


def test_a_pull_commits_what_was_handled_not_what_it_asks_for(desk: Desk) -> None:
    put(desk, "A", "B", "C")
    flags = pull_sysflag.SUBSCRIPTION | pull_sysflag.COMMIT_OFFSET
    desk.ask(RequestCode.PULL_MESSAGE, pull(sys_flag=flags, queue_offset=2, commit_offset=1))
    assert desk.offsets.get("g", "orders", 0) == 1


def test_a_pull_that_is_read_late_does_not_take_an_offset_back(desk: Desk) -> None:
    desk.offsets.commit("g", "orders", 0, 8)
    desk.ask(RequestCode.PULL_MESSAGE, pull(sys_flag=pull_sysflag.SUBSCRIPTION | pull_sysflag.COMMIT_OFFSET, commit_offset=7))
    assert desk.offsets.get("g", "orders", 0) == 8


def consumer(version: int = 1, expression_type: str = "TAG", model: MessageModel = MessageModel.CLUSTERING) -> ConsumerData:
    subscription = SubscriptionData(
        topic="orders", sub_string="A", code_set=[tags_code("A")], sub_version=version, expression_type=expression_type
    )
    return ConsumerData(group_name="g", message_model=model, subscription_data_set=[subscription])


def test_a_pull_without_a_subscription_takes_the_heartbeats(desk: Desk) -> None:
    put(desk, "A", "B")
    desk.heartbeat(Wire(), consumers=[consumer()])
    assert bodies(desk.ask(RequestCode.PULL_MESSAGE, PULL)) == [b"A"]


@pytest.mark.parametrize(
    ("consumers", "header", "code"),
    [
        ([], {}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ([ConsumerData(group_name="g")], {}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ([consumer(version=1)], {"sub_version": 2}, ResponseCode.SUBSCRIPTION_NOT_LATEST),
        ([consumer(expression_type="SQL92")], {}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_subscription_that_is_missing_old_or_not_by_tag_is_refused(
    desk: Desk, consumers: list[ConsumerData], header: dict[str, object], code: ResponseCode
) -> None:
    desk.heartbeat(Wire(), consumers=consumers)
    assert desk.ask(RequestCode.PULL_MESSAGE, msgspec.structs.replace(PULL, **header)).code == code


def test_a_group_is_refused_what_its_settings_forbid(desk: Desk) -> None:
    desk.groups.update(SubscriptionGroupConfig("g", consume_broadcast_enable=False))
    desk.heartbeat(Wire(), consumers=[consumer(model=MessageModel.BROADCASTING)])
    assert desk.ask(RequestCode.PULL_MESSAGE, PULL).code == ResponseCode.NO_PERMISSION
    desk.groups.update(SubscriptionGroupConfig("g", consume_enable=False))
    assert desk.ask(RequestCode.PULL_MESSAGE, pull()).code == ResponseCode.NO_PERMISSION


def test_a_topic_is_refused_that_is_unknown_or_write_only_or_has_no_such_queue(desk: Desk) -> None:
    assert desk.ask(RequestCode.PULL_MESSAGE, pull(topic="nowhere")).code == ResponseCode.TOPIC_NOT_EXIST
    assert desk.ask(RequestCode.PULL_MESSAGE, pull(queue_id=4)).code == ResponseCode.SYSTEM_ERROR
    desk.topics.update(TopicConfig("orders", 4, 4, perm=2))
    assert desk.ask(RequestCode.PULL_MESSAGE, pull()).code == ResponseCode.NO_PERMISSION


def test_sql_is_refused_with_a_clear_remark(desk: Desk) -> None:
    answer = desk.ask(RequestCode.PULL_MESSAGE, pull(subscription="a > 1", expression_type="SQL92"))
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "The broker does not support consumer to filter message by SQL92",
    )


@pytest.fixture
def sql_desk(make_desk: Callable[..., Desk]) -> Desk:
    """Creates a broker with enablePropertyFilter."""
    desk = make_desk(property_filter=True)
    desk.topics.update(TopicConfig("orders", 4, 4))
    return desk


def put_numbered(desk: Desk, *numbers: int, topic: bytes = b"orders", **named: str) -> None:
    for number in numbers:
        append(desk.store, b"%d" % number, topic=topic, properties=properties.encode({"n": str(number), **named}))
    desk.commit.settle()


def by_sql(expression: str, **changes: object) -> PullMessageRequestHeader:
    return pull(subscription=expression, expression_type="SQL92", **changes)


def waiting_for(expression: str) -> PullMessageRequestHeader:
    return by_sql(expression, sys_flag=pull_sysflag.SUBSCRIPTION | pull_sysflag.SUSPEND, suspend_timeout_millis=15_000)


def test_only_messages_come_whose_properties_match(sql_desk: Desk) -> None:
    put_numbered(sql_desk, *range(10))
    answer = sql_desk.ask(RequestCode.PULL_MESSAGE, by_sql("n BETWEEN 3 AND 4 OR n = 8"))
    assert bodies(answer) == [b"3", b"4", b"8"]
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 10


def test_a_pull_by_properties_gets_no_more_than_it_asks_for_and_goes_on_behind_it(sql_desk: Desk) -> None:
    put_numbered(sql_desk, *range(10))
    answer = sql_desk.ask(RequestCode.PULL_MESSAGE, by_sql("n > 2", max_msg_nums=2))
    assert bodies(answer) == [b"3", b"4"]
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 5


def test_messages_whose_properties_do_not_match_are_skipped_at_once(sql_desk: Desk) -> None:
    put_numbered(sql_desk, 1, 2)
    answer = sql_desk.ask(RequestCode.PULL_MESSAGE, by_sql("n > 2"))
    assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 2


def test_a_group_consumes_by_the_expression_of_its_heartbeats_and_gets_every_redelivery(sql_desk: Desk) -> None:
    put_numbered(sql_desk, 1, 2, 3)
    subscription = SubscriptionData(topic="orders", sub_string="n > 2", sub_version=1, expression_type="SQL92")
    redeliveries = SubscriptionData(topic="%RETRY%g")
    sql_desk.heartbeat(Wire(), consumers=[ConsumerData(group_name="g", subscription_data_set=[subscription, redeliveries])])
    assert bodies(sql_desk.ask(RequestCode.PULL_MESSAGE, PULL)) == [b"3"]
    put_numbered(sql_desk, 1, topic=b"%RETRY%g", RETRY_TOPIC="orders")
    retry = msgspec.structs.replace(PULL, topic="%RETRY%g")
    assert bodies(sql_desk.ask(RequestCode.PULL_MESSAGE, retry)) == [b"1"]


def test_a_wrong_expression_in_a_heartbeat_is_told_to_whoever_pulls(sql_desk: Desk) -> None:
    subscription = SubscriptionData(topic="orders", sub_string="n >", expression_type="SQL92")
    sql_desk.heartbeat(Wire(), consumers=[ConsumerData(group_name="g", subscription_data_set=[subscription])])
    assert sql_desk.ask(RequestCode.PULL_MESSAGE, PULL).code == ResponseCode.FILTER_DATA_NOT_EXIST


def test_a_pull_that_waits_is_woken_only_by_a_message_whose_properties_match(sql_desk: Desk) -> None:
    wire = Wire()
    sql_desk.request(wire, RequestCode.PULL_MESSAGE, waiting_for("n > 2"))
    put_numbered(sql_desk, 1, 2)
    assert wire.answers == []
    put_numbered(sql_desk, 3)
    assert [bodies(answer) for answer in wire.answers] == [[b"3"]]


def test_pulls_that_wait_do_not_hold_up_others_for_long_by_their_expressions(sql_desk: Desk) -> None:
    wires = [Wire(f"127.0.0.1:{number}") for number in range(1, 300)]
    dear = " OR ".join(["n > 2"] * 128)
    for wire in wires:
        sql_desk.request(wire, RequestCode.PULL_MESSAGE, waiting_for(dear))
    plain = held(sql_desk)
    put_numbered(sql_desk, 1)
    told_to_come_again = [wire for wire in wires if wire.answers]
    assert 0 < len(told_to_come_again) < len(wires)
    (answer,) = told_to_come_again[0].answers
    assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 0
    sql_desk.pulls.answer_overdue()
    assert [bodies(answer) for answer in plain.answers] == [[b"1"]]


def held(desk: Desk, subscription: str = "*") -> Wire:
    """Sends a pull that waits. Returns its connection."""
    wire = Wire()
    desk.request(wire, RequestCode.PULL_MESSAGE, waiting(subscription=subscription))
    assert wire.answers == []
    return wire


def test_a_pull_that_waits_is_answered_though_what_it_wants_comes_behind_much_else(desk: Desk) -> None:
    wire = held(desk, "B")
    put(desk, *["A"] * 900, "B")

    (answer,) = wire.answers

    assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
    offset = answer.decode_header(PullMessageResponseHeader).next_begin_offset
    assert bodies(desk.ask(RequestCode.PULL_MESSAGE, pull(subscription="B", queue_offset=offset))) == [b"B"]


@pytest.mark.parametrize("is_arrival", [True, False])
def test_every_pull_that_waits_is_answered_though_the_disk_fails(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, is_arrival: bool
) -> None:
    wires = [held(desk), held(desk)]

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Segments, "read", fail)
    if not is_arrival:
        desk.store.arrival_listener = None
    put(desk, "A")
    if not is_arrival:
        desk.clock.now_ms += 20_000
        desk.pulls.answer_overdue()

    assert [[answer.code for answer in wire.answers] for wire in wires] == [[ResponseCode.SYSTEM_ERROR]] * 2


def test_very_many_pulls_that_one_message_wakes_are_answered_in_several_turns(desk: Desk) -> None:
    wires = [held(desk) for _ in range(600)]
    put(desk, "A")
    assert sum(len(wire.answers) for wire in wires) == 256
    assert desk.pulls.answer_overdue() == 0
    assert desk.pulls.answer_overdue() != 0
    assert all(len(wire.answers) == 1 for wire in wires)


def test_a_pull_by_tag_sleeps_through_what_others_want_and_wakes_for_its_own(desk: Desk) -> None:
    wire = held(desk, "B")
    for _ in range(5):
        put(desk, "A")
    assert wire.answers == []
    put(desk, "B")
    (answer,) = wire.answers
    assert (answer.code, bodies(answer)) == (ResponseCode.SUCCESS, [b"B"])
    assert answer.decode_header(PullMessageResponseHeader).next_begin_offset == 6
