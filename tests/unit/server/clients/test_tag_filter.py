"""Tests subscriptions by tag."""

import pytest

from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.protocol.bodies.heartbeat import SubscriptionData
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.clients.message_filters import parse_tags, wanted_codes


@pytest.mark.parametrize("expression", ["*", "", None])
def test_a_star_or_nothing_wants_everything(expression: str | None) -> None:
    assert parse_tags(expression) is None


def test_tags_are_separated_by_two_bars() -> None:
    assert parse_tags(" A || B||") == {tags_code("A"), tags_code("B")}


def test_bars_alone_cannot_be_parsed() -> None:
    with pytest.raises(RequestRefused) as refused:
        parse_tags("||")
    assert refused.value.code is ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_a_heartbeats_codes_are_taken_as_they_are() -> None:
    assert wanted_codes(SubscriptionData(topic="t", sub_string="*", code_set=[1])) is None
    assert wanted_codes(SubscriptionData(topic="t", sub_string="A", code_set=[65])) == {65}


def test_a_subscription_of_megabytes_is_refused() -> None:
    with pytest.raises(RequestRefused, match="limit 65536"):
        parse_tags("A||" * 30_000)
