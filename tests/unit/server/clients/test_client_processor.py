"""Tests heartbeats and unregistrations."""

import logging
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from rocketmq_broker.protocol.bodies.group import CheckClientRequestBody, GetConsumerListByGroupResponseBody
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.group import GetConsumerListByGroupRequestHeader, UnregisterClientRequestHeader
from rocketmq_broker.server.clients import client_processor
from rocketmq_broker.server.clients.client_channel import CHANNEL_EXPIRES_MS
from tests.unit.server.conftest import Desk, Wire

CONSUMER = ConsumerData(group_name="g", subscription_data_set=[SubscriptionData(topic="orders")])


def test_a_heartbeat_makes_the_groups_retry_topic(desk: Desk) -> None:
    desk.heartbeat(Wire(), consumers=[CONSUMER])
    retry = desk.topics.get("%RETRY%g")
    assert retry is not None
    assert (retry.read_queue_nums, retry.perm) == (1, 6)


def test_members_are_listed_and_told_of_each_other(desk: Desk) -> None:
    one, two = Wire("127.0.0.1:1"), Wire("127.0.0.1:2")
    desk.heartbeat(one, consumers=[CONSUMER])
    desk.heartbeat(two, consumers=[CONSUMER])
    answer = desk.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader(consumer_group="g"))
    ids = GetConsumerListByGroupResponseBody.decode(answer.body).consumer_id_list
    assert ids == ["client@127.0.0.1:1", "client@127.0.0.1:2"]
    assert desk.changes[-1] == ("g", [one, two])


def test_the_groups_that_subscribe_to_a_topic_are_notified_of_its_change(desk: Desk) -> None:
    one, two = Wire("127.0.0.1:1"), Wire("127.0.0.1:2")
    desk.heartbeat(one, consumers=[CONSUMER])
    other = ConsumerData(group_name="h", subscription_data_set=[SubscriptionData(topic="payments")])
    desk.heartbeat(two, consumers=[other])
    desk.changes.clear()
    desk.consumers.topics_changed({"orders", "refunds"})
    assert desk.changes == [("g", [one])]


def test_a_group_that_is_not_online_has_no_members(desk: Desk) -> None:
    answer = desk.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequestHeader(consumer_group="g"))
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "no consumer for this group, g")


def test_a_client_that_says_goodbye_is_gone_from_its_groups(desk: Desk) -> None:
    wire = Wire()
    desk.heartbeat(wire, consumers=[CONSUMER], producers=("p",))
    goodbye = UnregisterClientRequestHeader(client_id="client@127.0.0.1:5555", producer_group="p", consumer_group="g")
    assert desk.ask(RequestCode.UNREGISTER_CLIENT, goodbye, wire=wire).code == ResponseCode.SUCCESS
    assert desk.producers.connections("p") == []
    assert desk.consumers.find("g") is None


def test_a_client_that_fell_silent_is_disconnected(desk: Desk) -> None:
    silent, alive = Wire("127.0.0.1:1"), Wire("127.0.0.1:2")
    desk.heartbeat(silent, consumers=[CONSUMER], producers=("p",))
    desk.clock.now_ms += CHANNEL_EXPIRES_MS + 1
    desk.heartbeat(alive, consumers=[CONSUMER])
    desk.clients.close_expired()
    assert (silent.is_closed, alive.is_closed) == (True, False)


@pytest.mark.parametrize(
    ("property_filter", "expression", "code"),
    [
        (True, "a > 1", ResponseCode.SUCCESS),
        (True, "a >", ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        (False, "a > 1", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_only_with_the_property_filter_a_client_with_a_right_expression_may_start(
    make_desk: Callable[..., Desk], property_filter: bool, expression: str, code: ResponseCode
) -> None:
    subscription = SubscriptionData(topic="orders", sub_string=expression, expression_type="SQL92")
    body = CheckClientRequestBody(client_id="c", group="g", subscription_data=subscription).encode()
    assert make_desk(property_filter=property_filter).ask(RequestCode.CHECK_CLIENT_CONFIG, body=body).code == code


def test_a_heartbeat_with_many_groups_is_taken_over_in_steps(desk: Desk) -> None:
    wire = Wire()
    names = [f"group-{number}" for number in range(1000)]
    desk.heartbeat(wire, consumers=[ConsumerData(group_name=name) for name in names], producers=tuple(names))
    assert desk.consumers.memberships.of(wire) == set(names)
    assert desk.producers.memberships.of(wire) == set(names)


def test_a_heartbeat_of_megabytes_is_refused_and_changes_nothing(desk: Desk) -> None:
    wire = Wire()
    groups = [ProducerData(group_name=f"group-{number}-{'x' * 1000}") for number in range(1100)]
    body = HeartbeatData(client_id="greedy", producer_data_set=groups).encode()
    answer = desk.ask(RequestCode.HEART_BEAT, None, body, wire)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "heartbeat too long" in (answer.remark or "")
    assert not desk.producers.memberships.of(wire)


def test_a_connection_in_too_many_groups_can_join_no_more_but_stays_in_those(desk: Desk) -> None:
    wire = Wire()

    def heartbeat(first: int) -> RemotingCommand:
        groups = [ProducerData(group_name=f"{number}") for number in range(first, first + 10_000)]
        return desk.ask(RequestCode.HEART_BEAT, None, HeartbeatData(client_id="c", producer_data_set=groups).encode(), wire)

    assert heartbeat(0).code == ResponseCode.SUCCESS
    assert "limit 15000" in (heartbeat(10_000).remark or "")
    assert heartbeat(0).code == ResponseCode.SUCCESS
    assert len(desk.producers.memberships.of(wire)) == 10_000


def test_a_client_joins_its_groups_though_others_are_in_all_that_may_be(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_processor, "MAX_MEMBERSHIPS", 100)

    def heartbeat(wire: Wire, groups: int) -> RemotingCommand:
        producers = [ProducerData(group_name=f"{number}") for number in range(0, groups, 2)]
        consumers = [ConsumerData(group_name=f"{number}") for number in range(1, groups, 2)]
        body = HeartbeatData(client_id="c", producer_data_set=producers, consumer_data_set=consumers).encode()
        return desk.ask(RequestCode.HEART_BEAT, None, body, wire)

    greedy, other = Wire("127.0.0.1:1"), Wire("127.0.0.1:2")
    assert heartbeat(greedy, 101).code == ResponseCode.SYSTEM_BUSY
    assert [heartbeat(greedy, 100).code, heartbeat(greedy, 101).code] == [ResponseCode.SUCCESS, ResponseCode.SYSTEM_BUSY]
    assert [heartbeat(other, 32).code, heartbeat(other, 33).code] == [ResponseCode.SUCCESS, ResponseCode.SYSTEM_BUSY]


def test_a_group_too_many_is_refused_and_keeps_no_other_group_of_the_client_from_joining(desk: Desk) -> None:
    wire, made = Wire(), Wire("127.0.0.1:2")
    desk.groups._max_groups = len(desk.groups.groups) + 1
    desk.heartbeat(made, consumers=[ConsumerData(group_name="g")])
    consumers = [ConsumerData(group_name="too-many"), ConsumerData(group_name="g")]
    body = HeartbeatData(client_id="c", consumer_data_set=consumers).encode()
    answer = desk.ask(RequestCode.HEART_BEAT, None, body, wire)
    assert (answer.code, "maxSubscriptionGroupNum=" in (answer.remark or "")) == (ResponseCode.SYSTEM_BUSY, True)
    assert desk.consumers.memberships.of(wire) == {"g"}


def test_a_heartbeat_that_is_no_json_is_answered(desk: Desk) -> None:
    assert desk.ask(RequestCode.HEART_BEAT, body=b"\xff{").code == ResponseCode.SYSTEM_ERROR


def subscribing(*subscriptions: SubscriptionData) -> list[ConsumerData]:
    return [ConsumerData(group_name="g", subscription_data_set=[*subscriptions, SubscriptionData(topic="%RETRY%g")])]


def beat(desk: Desk, wire: Wire, consumers: list[ConsumerData]) -> RemotingCommand:
    data = HeartbeatData(client_id=f"client@{wire.peer}", consumer_data_set=consumers)
    return desk.ask(RequestCode.HEART_BEAT, None, data.encode(), wire)


ORDERS, REFUNDS = SubscriptionData(topic="orders"), SubscriptionData(topic="refunds", sub_string="b || a")
DIFFERENT = (
    "members of the consumer group g subscribe to different messages: client@127.0.0.1:1 to orders (*), "
    "client@127.0.0.1:2 to refunds (a||b). One member reads each queue, and the others do not receive what it filters out"
)


def test_members_that_subscribe_to_different_messages_are_answered_so_until_they_agree(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = Wire("127.0.0.1:1"), Wire("127.0.0.1:2")
    assert beat(desk, one, subscribing(ORDERS)).remark is None
    for wire, subscription in ((two, REFUNDS), (one, ORDERS), (two, REFUNDS)):
        answer = beat(desk, wire, subscribing(subscription))
        assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, DIFFERENT)
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        f"{DIFFERENT}. Use the same subscriptions for all members, or a separate group for each program"
    ]
    assert beat(desk, two, subscribing(ORDERS)).remark is None
    assert beat(desk, two, subscribing(REFUNDS)).remark == DIFFERENT
    desk.consumers.forget(two)
    assert beat(desk, one, subscribing(ORDERS)).remark is None


def test_members_that_write_the_same_subscriptions_in_another_way_agree(desk: Desk) -> None:
    sql = SubscriptionData(topic="bills", sub_string="price > 10", expression_type="SQL92", sub_version=1)
    first = subscribing(SubscriptionData(topic="refunds", sub_string="a||b", tags_set=["a", "b"], sub_version=7), ORDERS, sql)
    second = subscribing(ORDERS, REFUNDS, replace(sql, sub_version=2))
    assert beat(desk, Wire("127.0.0.1:1"), first).remark is None
    assert beat(desk, Wire("127.0.0.1:2"), second).remark is None
    assert beat(desk, Wire("127.0.0.1:3"), subscribing()).remark is None  # it asks for queues by itself


def test_what_is_kept_and_said_of_subscriptions_is_short(desk: Desk) -> None:
    one, two = Wire("127.0.0.1:1"), Wire("127.0.0.1:2")
    topics = [SubscriptionData(topic=f"topic-{number}", sub_string="x" * 1000) for number in range(50)]
    beat(desk, one, subscribing(*topics))
    assert beat(desk, two, subscribing(*topics)).remark is None
    remark = beat(desk, two, subscribing(*topics[:-1])).remark
    assert remark is not None
    assert len(remark) < 1000
