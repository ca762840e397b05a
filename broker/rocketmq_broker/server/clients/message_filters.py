"""Compiles subscriptions into filters by tag or by SQL92 expression (RocketMQ's FilterAPI and ConsumerFilterManager)."""

from functools import lru_cache
from typing import Final, NamedTuple

from rocketmq_broker.filter import MAX_LENGTH, IllegalExpression, SqlFilter, compile_sql
from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.protocol.bodies.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG, SUBSCRIBE_ALL, SubscriptionData
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused

MAX_EXPRESSION_LENGTH: Final = 64 * 1024
"""The maximum length of a tag expression in characters: enough for a thousand long tags.

Parsing an expression of this length takes about 10 ms, for each pull that contains its own subscription.
"""


def parse_tags(expression: str | None) -> frozenset[int] | None:
    """Returns the hash codes of the tags in the expression, or None if it matches all messages. Raises RequestRefused."""
    if not expression or expression == SUBSCRIBE_ALL:
        return None
    if len(expression) > MAX_EXPRESSION_LENGTH:
        remark = f"subscription too long: {len(expression)} characters, limit {MAX_EXPRESSION_LENGTH}"
        raise RequestRefused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark)
    tags = [tag.strip() for tag in expression.split("||")]
    codes = frozenset(tags_code(tag) for tag in tags if tag)
    if not codes:
        raise RequestRefused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
    return codes


def wanted_codes(subscription: SubscriptionData) -> frozenset[int] | None:
    """Returns the hash codes of the tags in a heartbeat's subscription, or None if it matches all messages."""
    if subscription.sub_string == SUBSCRIBE_ALL or not subscription.code_set:
        return None
    return frozenset(subscription.code_set)


EXPRESSIONS_KEPT: Final = 1024
"""The maximum number of expressions in the cache, compiled or illegal. RocketMQ caches 100."""

LENGTH_OF_A_TAG: Final = 20


class MessageFilter(NamedTuple):
    """Matches messages by tags codes (hash codes of tags) or by an SQL92 expression.

    Matches all messages if both attributes are None.
    """

    tags_codes: frozenset[int] | None
    sql: SqlFilter | None = None

    @property
    def expression_length(self) -> int:
        """Returns the length of the expression in characters. Each tag after the first counts as LENGTH_OF_A_TAG."""
        if self.sql is not None:
            return len(self.sql.expression)
        return LENGTH_OF_A_TAG * (len(self.tags_codes) - 1) if self.tags_codes else 0


class MessageFilters:
    """Creates filters from subscriptions. Caches compiled expressions."""

    def __init__(self, *, is_property_filter_enabled: bool) -> None:
        """Creates an empty cache. `is_property_filter_enabled` (RocketMQ's enablePropertyFilter) allows SQL92 expressions."""
        self._is_property_filter_enabled = is_property_filter_enabled
        self._compiled = lru_cache(EXPRESSIONS_KEPT)(_compiled)

    def of_expression(self, kind: str | None, expression: str | None) -> MessageFilter:
        """Returns the filter of an expression of type TAG or SQL92. The type None means TAG. Raises RequestRefused."""
        if _is_by_tag(kind):
            return MessageFilter(parse_tags(expression))
        remark = "parse the consumer's subscription failed: "
        return self._by_sql(kind, expression, ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark)

    def of_subscription(self, subscription: SubscriptionData) -> MessageFilter:
        """Returns the filter of a group's subscription. Raises RequestRefused."""
        if _is_by_tag(subscription.expression_type):
            return MessageFilter(wanted_codes(subscription))
        remark = "The broker's consumer filter data is not exist!Your expression may be wrong! "
        return self._by_sql(subscription.expression_type, subscription.sub_string, ResponseCode.FILTER_DATA_NOT_EXIST, remark)

    def check(self, subscription: SubscriptionData) -> None:
        """Raises RequestRefused if the broker does not support the subscription's filter (checkClientConfig)."""
        if not _is_by_tag(subscription.expression_type):
            kind, expression = subscription.expression_type, subscription.sub_string
            self._by_sql(kind, expression, ResponseCode.SUBSCRIPTION_PARSE_FAILED, "Invalid MessageSelector. ")

    def _by_sql(self, kind: str | None, expression: str | None, code: ResponseCode, remark: str) -> MessageFilter:
        """Returns the filter of an expression. Raises RequestRefused with `code` and `remark` if the expression is illegal."""
        if not self._is_property_filter_enabled or kind != EXPRESSION_SQL92:
            not_supported = f"The broker does not support consumer to filter message by {kind}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, not_supported)
        expression = expression or ""
        compiled = self._compiled(expression) if len(expression) <= MAX_LENGTH else _compiled(expression)
        if isinstance(compiled, str):
            raise RequestRefused(code, remark + compiled)
        return MessageFilter(None, compiled)


def _is_by_tag(expression_type: str | None) -> bool:
    return not expression_type or expression_type == EXPRESSION_TAG


def _compiled(expression: str) -> SqlFilter | str:
    """Returns the compiled filter, or the error text if the expression is illegal.

    Error texts are cached too, because clients repeat illegal expressions.
    """
    try:
        return compile_sql(expression)
    except IllegalExpression as error:
        return str(error)
