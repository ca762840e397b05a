"""Subscriptions: expressions, and the exact filter behind the broker's hash filter."""

import pytest

from broker.client import IllegalConfiguration
from broker.client.subscription import Subscription
from broker.message.tags import java_hash_code
from tests.unit.client.messages import message, offsets


@pytest.mark.parametrize("expression", ["*", " * ", "", None])
def test_everything_is_wanted_without_tags(expression: str | None) -> None:
    subscription = Subscription.parse("orders", expression, 1)
    assert (subscription.expression, subscription.tags) == ("*", frozenset())
    assert offsets(subscription.matching([message(0), message(1, properties={"TAGS": "x"})])) == [0, 1]


def test_tags_are_split_and_trimmed() -> None:
    assert Subscription.parse("orders", "created|| paid ||", 1).tags == {"created", "paid"}


def test_an_expression_without_any_tag_is_refused() -> None:
    with pytest.raises(IllegalConfiguration, match="names no tag"):
        Subscription.parse("orders", "|| ||", 1)


def test_a_tag_with_the_same_hash_code_is_filtered_out() -> None:
    assert java_hash_code("Aa") == java_hash_code("BB")
    found = [message(0, properties={"TAGS": "Aa"}), message(1, properties={"TAGS": "BB"}), message(2, properties={})]
    assert offsets(Subscription.parse("orders", "Aa", 1).matching(found)) == [0]


def test_brokers_are_told_the_tags_and_their_hash_codes() -> None:
    wire = Subscription.parse("orders", "created || paid", 42).to_wire()
    assert (wire.topic, wire.sub_string, wire.sub_version) == ("orders", "created || paid", 42)
    assert dict(zip(wire.tags_set, wire.code_set, strict=True)) == {tag: java_hash_code(tag) for tag in ("created", "paid")}
