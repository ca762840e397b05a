"""Subscription expressions by tag: `*`, or `A || B` (RocketMQ's FilterAPI)."""

from typing import Final

from rocketmq_broker.message.tags import tags_code
from rocketmq_broker.protocol.bodies.heartbeat import SUBSCRIBE_ALL, SubscriptionData
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused

LONGEST_EXPRESSION: Final = 64 * 1024
"""Characters: a thousand long tags. So many are read in some 10 ms, at each pull that brings its subscription along."""


def parse_tags(expression: str | None) -> frozenset[int] | None:
    """Returns the hash codes of the wanted tags; None for all messages. Raises RequestRefused."""
    if not expression or expression == SUBSCRIBE_ALL:
        return None
    if len(expression) > LONGEST_EXPRESSION:
        remark = f"a subscription of {len(expression)} characters; {LONGEST_EXPRESSION} are the most"
        raise RequestRefused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark)
    tags = [tag.strip() for tag in expression.split("||")]
    codes = frozenset(tags_code(tag) for tag in tags if tag)
    if not codes:
        raise RequestRefused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
    return codes


def wanted_codes(subscription: SubscriptionData) -> frozenset[int] | None:
    """Returns the hash codes of the tags wanted by a heartbeat's subscription; None for all messages."""
    if subscription.sub_string == SUBSCRIBE_ALL or not subscription.code_set:
        return None
    return frozenset(subscription.code_set)
