"""Subscriptions to a topic: `*`, tags joined by `||`, or an SQL92 expression (RocketMQ's FilterAPI and MessageSelector)."""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.message import MessageExt, tags
from rocketmq_broker.message.text.mistakes import kind_of
from rocketmq_broker.protocol.bodies.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG, SUBSCRIBE_ALL, SubscriptionData

ALL = "*"
_JOINED_OTHERWISE = re.compile(r"[,;|]|\s(?:or|OR)\s")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MessageSelector:
    """A filter expression and its type. A str that is passed instead of a selector is a tag expression."""

    expression: str
    expression_type: str = EXPRESSION_TAG

    @classmethod
    def by_tag(cls, expression: str = SUBSCRIBE_ALL) -> Self:
        """Selects messages by tag: `*` for all messages, or tags such as `a || b`."""
        return cls(expression)

    @classmethod
    def by_sql(cls, expression: str) -> Self:
        """Selects messages by their properties, for example `amount > 100 AND region IN ('north', 'south')`.

        Brokers evaluate the expression, which requires enablePropertyFilter=true. The tag is the property TAGS.
        """
        return cls(expression, EXPRESSION_SQL92)

    @classmethod
    def of(cls, selector: "MessageSelector | str | None") -> "MessageSelector":
        """Converts a str or None to a tag selector. Returns a MessageSelector unchanged."""
        return selector if isinstance(selector, MessageSelector) else cls(selector or SUBSCRIBE_ALL)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A topic and its filter. A tag filter without tags matches all messages."""

    topic: str
    expression: str
    tags: frozenset[str]
    version: int
    """The time of the last change, in milliseconds since the epoch. Brokers keep the newest subscription."""
    expression_type: str = EXPRESSION_TAG

    @classmethod
    def parse(cls, topic: str, selector: MessageSelector | str | None, version: int) -> "Subscription":
        """Parses an expression. Raises IllegalConfiguration if it contains no tag, or is an empty SQL92 expression.

        Brokers check SQL92 expressions for other mistakes.
        """
        if not isinstance(selector, MessageSelector | str | None):
            raise IllegalConfiguration(
                f"subscription of {topic}: the expression must be a str or a MessageSelector, not {kind_of(selector)}"
            )
        selector = MessageSelector.of(selector)
        expression = selector.expression
        if selector.expression_type != EXPRESSION_TAG:
            if not expression.strip():
                raise IllegalConfiguration(
                    f"subscription of {topic}: the {selector.expression_type} expression must not be empty"
                )
            return cls(topic, expression, frozenset(), version, selector.expression_type)
        if not expression or expression.strip() == ALL:
            return cls(topic, ALL, frozenset(), version)
        wanted = frozenset(tag.strip() for tag in expression.split("||") if tag.strip())
        if not wanted:
            raise IllegalConfiguration(f"subscription of {topic}: no tag in {expression!r}; use '*' or tags such as 'a || b'")
        if len(wanted) == 1 and _JOINED_OTHERWISE.search(expression):
            logger.warning("subscription of %s: %r is one tag; join several tags with '||', as in 'a || b'", topic, expression)
        return cls(topic, expression, wanted, version)

    def to_wire(self) -> SubscriptionData:
        """Returns the subscription for a heartbeat, with the tags' hash codes for the brokers' filter."""
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
        """Returns True for a tag filter, which every broker supports."""
        return self.expression_type == EXPRESSION_TAG

    def matching(self, messages: Iterable[MessageExt]) -> list[MessageExt]:
        """Returns the messages whose tag matches. Brokers compare only hash codes, which two tags may share.

        Returns all messages for an SQL92 expression, which the broker has evaluated.
        """
        if not self.tags:
            return list(messages)
        return [message for message in messages if message.tags in self.tags]
