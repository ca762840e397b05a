"""Which messages a subscription wants: by tag, or by an SQL92 expression (RocketMQ's FilterAPI and ConsumerFilterManager)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from broker.filter import IllegalExpression, SqlFilter, compile_sql
from broker.protocol.codes import ResponseCode
from broker.protocol.headers import PullMessageRequestHeader
from broker.protocol.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG, SubscriptionData
from broker.remoting.dispatcher import RequestRefused
from broker.server.tag_filter import parse_tags, wanted_codes

EXPRESSIONS_KEPT: Final = 1024
"""Compiled. RocketMQ keeps 100."""


class MessageFilter(NamedTuple):
    """What a pull wants: messages with one of these tags codes, or those that the expression wants; without both, all."""

    tags_codes: frozenset[int] | None
    sql: SqlFilter | None = None

    @property
    def expression_length(self) -> int:
        """Characters of the expression, a measure of the memory that it takes."""
        return len(self.sql.expression) if self.sql is not None else 0


class MessageFilters:
    """Reads subscriptions. An expression is compiled when it is met first."""

    def __init__(self, *, is_property_filter_enabled: bool) -> None:
        """`is_property_filter_enabled` is RocketMQ's enablePropertyFilter: whether expressions are evaluated at all."""
        self._is_property_filter_enabled = is_property_filter_enabled
        self._compiled = lru_cache(EXPRESSIONS_KEPT)(_compiled)

    def of_pull(self, header: PullMessageRequestHeader) -> MessageFilter:
        """What a pull wants that brings its own subscription. Raises RequestRefused."""
        if _is_by_tag(header.expression_type):
            return MessageFilter(parse_tags(header.subscription))
        compiled = self._compile(header.expression_type, header.subscription)
        if isinstance(compiled, IllegalExpression):
            remark = f"parse the consumer's subscription failed: {compiled}"
            raise RequestRefused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark)
        return MessageFilter(None, compiled)

    def of_subscription(self, subscription: SubscriptionData) -> MessageFilter:
        """What a group wants, as its heartbeats say. Raises RequestRefused."""
        if _is_by_tag(subscription.expression_type):
            return MessageFilter(wanted_codes(subscription))
        compiled = self._compile(subscription.expression_type, subscription.sub_string)
        if isinstance(compiled, IllegalExpression):
            remark = f"The broker's consumer filter data is not exist!Your expression may be wrong! {compiled}"
            raise RequestRefused(ResponseCode.FILTER_DATA_NOT_EXIST, remark)
        return MessageFilter(None, compiled)

    def check(self, subscription: SubscriptionData) -> None:
        """Raises RequestRefused unless messages can be filtered as the subscription says (checkClientConfig)."""
        if _is_by_tag(subscription.expression_type):
            return
        compiled = self._compile(subscription.expression_type, subscription.sub_string)
        if isinstance(compiled, IllegalExpression):
            raise RequestRefused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"Invalid MessageSelector. {compiled}")

    def _compile(self, expression_type: str | None, expression: str | None) -> SqlFilter | IllegalExpression:
        if not self._is_property_filter_enabled or expression_type != EXPRESSION_SQL92:
            remark = f"The broker does not support consumer to filter message by {expression_type}"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        return self._compiled(expression or "")


def _is_by_tag(expression_type: str | None) -> bool:
    return not expression_type or expression_type == EXPRESSION_TAG


def _compiled(expression: str) -> SqlFilter | IllegalExpression:
    """The error is kept like the filter: a client that has a wrong expression comes again and again."""
    try:
        return compile_sql(expression)
    except IllegalExpression as error:
        return error
