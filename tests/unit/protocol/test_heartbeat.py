"""Tests heartbeats: defaults of omitted fields, constants as names and as ordinals, and refused values."""

from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.protocol import BodyError
from rocketmq_broker.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


def consumer_with(member: str, value: str) -> bytes:
    return f'{{"clientID":"c","consumerDataSet":[{{"groupName":"g","{member}":{value}}}]}}'.encode()


def test_what_a_client_leaves_out_is_what_javas_client_would_have_said() -> None:
    (consumer,) = HeartbeatData.decode(b'{"clientID":"c","consumerDataSet":[{"groupName":"g"}]}').consumer_data_set
    assert consumer.consume_type is ConsumeType.CONSUME_PASSIVELY
    assert consumer.message_model is MessageModel.CLUSTERING
    assert consumer.consume_from_where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    assert (consumer.subscription_data_set, consumer.unit_mode) == ([], False)


def test_a_subscription_is_to_everything_unless_it_says_otherwise() -> None:
    subscription = SubscriptionData(topic="orders")
    assert (subscription.sub_string, subscription.expression_type, subscription.tags_set) == ("*", "TAG", [])


@pytest.mark.parametrize(
    ("member", "constants"),
    [("consumeType", ConsumeType), ("messageModel", MessageModel), ("consumeFromWhere", ConsumeFromWhere)],
)
def test_constants_come_by_name_and_by_ordinal(member: str, constants: type[Enum]) -> None:
    for ordinal, constant in enumerate(constants):
        by_name = HeartbeatData.decode(consumer_with(member, f'"{constant.value}"'))
        by_ordinal = HeartbeatData.decode(consumer_with(member, str(ordinal)))
        assert by_name == by_ordinal


@pytest.mark.parametrize("value", ["-1", "99", '"SOMETIMES"', "1.5", "[]", "true"])
@pytest.mark.parametrize("member", ["consumeType", "messageModel", "consumeFromWhere"])
def test_a_constant_that_nobody_knows_is_refused(member: str, value: str) -> None:
    with pytest.raises(BodyError, match="invalid HeartbeatData body"):
        HeartbeatData.decode(consumer_with(member, value))


@pytest.mark.parametrize("member", ["consumeType", "messageModel", "consumeFromWhere"])
def test_a_constant_may_be_null(member: str) -> None:
    HeartbeatData.decode(consumer_with(member, "null"))


def test_a_heartbeat_without_a_client_id_is_refused() -> None:
    with pytest.raises(BodyError, match="clientID"):
        HeartbeatData.decode(b"{}")


def test_a_group_without_a_name_is_refused() -> None:
    for member in ("producerDataSet", "consumerDataSet"):
        with pytest.raises(BodyError, match="groupName"):
            HeartbeatData.decode(b'{"clientID":"c","%b":[{}]}' % member.encode())


@given(
    client_id=names,
    groups=st.lists(names, max_size=3),
    topics=st.lists(names, max_size=3),
    where=st.sampled_from(ConsumeFromWhere),
    version=st.integers(0, 2**63 - 1),
)
def test_a_heartbeat_comes_back_as_it_went(
    client_id: str, groups: list[str], topics: list[str], where: ConsumeFromWhere, version: int
) -> None:
    subscriptions = [SubscriptionData(topic=topic, sub_version=version, tags_set=["a"], code_set=[97]) for topic in topics]
    heartbeat = HeartbeatData(
        client_id=client_id,
        producer_data_set=[ProducerData(group_name=group) for group in groups],
        consumer_data_set=[
            ConsumerData(group_name=group, consume_from_where=where, subscription_data_set=subscriptions) for group in groups
        ],
    )
    assert HeartbeatData.decode(heartbeat.encode()) == heartbeat


def test_members_that_nobody_knows_are_passed_over() -> None:
    heartbeat = HeartbeatData.decode(b'{"clientID":"c","heartbeatFingerprint":7,"withoutSub":true}')
    assert heartbeat == HeartbeatData(client_id="c")
