"""Tests subscription expressions, and the exact filter after the broker's hash filter."""

import pytest

from rocketmq_broker.client import IllegalConfiguration, MessageSelector
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.message.tags import java_hash_code
from tests.unit.client.messages import message, offsets


@pytest.mark.parametrize("expression", ["*", " * ", "", None])
def test_everything_is_wanted_without_tags(expression: str | None) -> None:
    subscription = Subscription.parse("orders", expression, 1)
    assert (subscription.expression, subscription.tags) == ("*", frozenset())
    assert offsets(subscription.matching([message(0), message(1, properties={"TAGS": "x"})])) == [0, 1]


def test_tags_are_split_and_trimmed() -> None:
    assert Subscription.parse("orders", "created|| paid ||", 1).tags == {"created", "paid"}


def test_an_expression_without_any_tag_is_refused() -> None:
    with pytest.raises(IllegalConfiguration, match="no tag in"):
        Subscription.parse("orders", "|| ||", 1)


def test_a_tag_with_the_same_hash_code_is_filtered_out() -> None:
    assert java_hash_code("Aa") == java_hash_code("BB")
    found = [message(0, properties={"TAGS": "Aa"}), message(1, properties={"TAGS": "BB"}), message(2, properties={})]
    assert offsets(Subscription.parse("orders", "Aa", 1).matching(found)) == [0]


def test_brokers_are_told_the_tags_and_their_hash_codes() -> None:
    wire = Subscription.parse("orders", "created || paid", 42).to_wire()
    assert (wire.topic, wire.sub_string, wire.sub_version) == ("orders", "created || paid", 42)
    assert dict(zip(wire.tags_set, wire.code_set, strict=True)) == {tag: java_hash_code(tag) for tag in ("created", "paid")}


def test_a_string_stands_for_an_expression_by_tag() -> None:
    assert Subscription.parse("orders", MessageSelector.by_tag("a || b"), 1) == Subscription.parse("orders", "a || b", 1)
    assert Subscription.parse("orders", MessageSelector.by_tag(), 1) == Subscription.parse("orders", None, 1)


def test_brokers_are_told_an_sql_expression_as_it_is_and_no_tags() -> None:
    wire = Subscription.parse("orders", MessageSelector.by_sql("a > 3 || b"), 42).to_wire()
    assert (wire.sub_string, wire.expression_type, wire.sub_version) == ("a > 3 || b", "SQL92", 42)
    assert (wire.tags_set, wire.code_set) == ([], [])


def test_what_a_broker_found_by_sql_is_taken_as_it_is() -> None:
    found = [message(0, properties={"TAGS": "a"}), message(1, properties={})]
    assert offsets(Subscription.parse("orders", MessageSelector.by_sql("*"), 1).matching(found)) == [0, 1]


@pytest.mark.parametrize("expression", ["", "  "])
def test_an_empty_sql_expression_is_refused(expression: str) -> None:
    with pytest.raises(IllegalConfiguration, match="the SQL92 expression must not be empty"):
        Subscription.parse("orders", MessageSelector.by_sql(expression), 1)
