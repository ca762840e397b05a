"""Tests which messages match subscriptions by tag and by expression."""

import pytest

from rocketmq_broker.filter import MAX_LENGTH
from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.protocol.bodies.heartbeat import SubscriptionData
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.clients.message_filters import MessageFilters, parse_tags, wanted_codes

FILTERS = MessageFilters(is_property_filter_enabled=True)
WITHOUT = MessageFilters(is_property_filter_enabled=False)


def sql(expression: str, kind: str | None = "SQL92") -> SubscriptionData:
    return SubscriptionData(topic="orders", sub_string=expression, expression_type=kind)


def refusal(call: object, *arguments: object) -> tuple[ResponseCode, str]:
    with pytest.raises(RequestRefused) as refused:
        call(*arguments)  # type: ignore[operator]
    return refused.value.code, refused.value.remark


@pytest.mark.parametrize("expression", ["*", "", None])
def test_a_star_or_nothing_wants_everything(expression: str | None) -> None:
    assert parse_tags(expression) is None


def test_tags_are_separated_by_two_bars() -> None:
    assert parse_tags(" A || B||") == {tags_code("A"), tags_code("B")}


def test_bars_alone_cannot_be_parsed() -> None:
    assert refusal(parse_tags, "||")[0] is ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_a_heartbeats_codes_are_taken_as_they_are() -> None:
    assert wanted_codes(SubscriptionData(topic="t", sub_string="*", code_set=[1])) is None
    assert wanted_codes(SubscriptionData(topic="t", sub_string="A", code_set=[65])) == {65}


def test_a_subscription_of_megabytes_is_refused() -> None:
    with pytest.raises(RequestRefused, match="limit 65536"):
        parse_tags("A||" * 30_000)


@pytest.mark.parametrize("kind", ["TAG", "", None])
@pytest.mark.parametrize("filters", [FILTERS, WITHOUT])
def test_tags_are_understood_whatever_is_enabled(filters: MessageFilters, kind: str | None) -> None:
    assert filters.of_expression(kind, "A || B") == ({tags_code("A"), tags_code("B")}, None)
    assert filters.of_subscription(sql("*", kind)) == (None, None)
    filters.check(sql("A || B", kind))


def test_an_expression_is_compiled_once() -> None:
    of_expression, of_subscription = FILTERS.of_expression("SQL92", "a > 1"), FILTERS.of_subscription(sql("a > 1"))
    assert of_expression.sql is of_subscription.sql
    assert of_expression.sql is not None
    assert of_expression.sql.matches(b"a\x012")
    FILTERS.check(sql("a > 1"))


@pytest.mark.parametrize(("filters", "kind"), [(WITHOUT, "SQL92"), (FILTERS, "GROOVY")])
def test_what_is_not_enabled_or_known_is_refused_in_apaches_words(filters: MessageFilters, kind: str) -> None:
    expected = (ResponseCode.SYSTEM_ERROR, f"The broker does not support consumer to filter message by {kind}")
    assert refusal(filters.of_expression, kind, "a > 1") == expected
    assert refusal(filters.of_subscription, sql("a > 1", kind)) == expected
    assert refusal(filters.check, sql("a > 1", kind)) == expected


@pytest.mark.parametrize("expression", ["a >", ""])
def test_a_wrong_expression_is_refused_with_apaches_codes_and_what_is_wrong(expression: str) -> None:
    of_expression = refusal(FILTERS.of_expression, "SQL92", expression)
    of_subscription = refusal(FILTERS.of_subscription, sql(expression))
    checked = refusal(FILTERS.check, sql(expression))
    for (code, remark), expected_code, beginning in (
        (of_expression, ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"),
        (of_subscription, ResponseCode.FILTER_DATA_NOT_EXIST, "The broker's consumer filter data is not exist!"),
        (checked, ResponseCode.SUBSCRIPTION_PARSE_FAILED, "Invalid MessageSelector. "),
    ):
        assert code is expected_code
        assert remark.startswith(beginning)
        assert "expression is empty" in remark or "expected a property or a value" in remark


def test_an_expression_that_is_too_long_is_refused_and_not_kept() -> None:
    filters = MessageFilters(is_property_filter_enabled=True)
    code, remark = refusal(filters.of_expression, "SQL92", "a = '" + "x" * MAX_LENGTH + "'")
    assert (code, len(remark) < 200) == (ResponseCode.SUBSCRIPTION_PARSE_FAILED, True)
    assert filters._compiled.cache_info().currsize == 0


def test_a_remark_shows_only_the_beginning_of_a_long_text() -> None:
    _, remark = refusal(FILTERS.of_expression, "SQL92", "a > 1 '" + "x" * 5000 + "'")
    assert len(remark) < 200


def test_a_pull_without_an_expression_is_refused() -> None:
    assert refusal(FILTERS.of_expression, "SQL92", None)[0] is ResponseCode.SUBSCRIPTION_PARSE_FAILED
