"""The subscription to a topic: `*`, tags joined by `||`, or an SQL92 expression (RocketMQ's FilterAPI)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.client.pull.message_selector import MessageSelector
from rocketmq_broker.message import MessageExt, tags
from rocketmq_broker.message.text.mistakes import kind_of
from rocketmq_broker.protocol.bodies.heartbeat import EXPRESSION_TAG, SubscriptionData

ALL = "*"
_JOINED_OTHERWISE = re.compile(r"[,;|]|\s(?:or|OR)\s")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A topic and its filter; in a filter by tag, no tags means all messages."""

    topic: str
    expression: str
    tags: frozenset[str]
    version: int
    """The time of the last change in milliseconds since the epoch: brokers keep the newest."""
    expression_type: str = EXPRESSION_TAG

    @classmethod
    def parse(cls, topic: str, selector: MessageSelector | str | None, version: int) -> Subscription:
        """Parses an expression. Raises IllegalConfiguration if it names no tag at all, or is empty and not by tag.

        The brokers find other mistakes in an expression that is not by tag.
        """
        if not isinstance(selector, MessageSelector | str | None):
            raise IllegalConfiguration(
                f"subscription of {topic}: the expression is {kind_of(selector)}; a str is expected, as 'a || b', "
                "or a MessageSelector"
            )
        selector = MessageSelector.of(selector)
        expression = selector.expression
        if selector.expression_type != EXPRESSION_TAG:
            if not expression.strip():
                raise IllegalConfiguration(
                    f"subscription of {topic}: an expression of type {selector.expression_type} is expected"
                )
            return cls(topic, expression, frozenset(), version, selector.expression_type)
        if not expression or expression.strip() == ALL:
            return cls(topic, ALL, frozenset(), version)
        wanted = frozenset(tag.strip() for tag in expression.split("||") if tag.strip())
        if not wanted:
            raise IllegalConfiguration(f"subscription of {topic}: {expression!r} names no tag; write '*', or tags as in 'a || b'")
        if len(wanted) == 1 and _JOINED_OTHERWISE.search(expression):
            logger.warning(
                "subscription of %s: %r is one tag; several tags are joined by '||', as in 'a || b'", topic, expression
            )
        return cls(topic, expression, wanted, version)

    def to_wire(self) -> SubscriptionData:
        """Returns the subscription for a heartbeat, with the hash codes that brokers filter by."""
        wanted = sorted(self.tags)
        return SubscriptionData(
            topic=self.topic,
            sub_string=self.expression,
            tags_set=wanted,
            code_set=[tags.tags_code(tag) for tag in wanted],
            sub_version=self.version,
            expression_type=self.expression_type,
        )

    @property
    def is_by_tag(self) -> bool:
        """Returns whether the filter is by tag, which every broker knows."""
        return self.expression_type == EXPRESSION_TAG

    def matching(self, messages: Iterable[MessageExt]) -> list[MessageExt]:
        """Returns the messages whose tag really matches: brokers compare hash codes only, and two tags may share one.

        Brokers evaluate expressions of other kinds exactly.
        """
        if not self.tags:
            return list(messages)
        return [message for message in messages if message.tags in self.tags]
