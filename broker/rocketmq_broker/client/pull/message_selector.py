"""Selects messages of a topic by tag or by SQL92 expression (RocketMQ's MessageSelector)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from rocketmq_broker.protocol.bodies.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG, SUBSCRIBE_ALL


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
    def of(cls, selector: MessageSelector | str | None) -> MessageSelector:
        """Converts a str or None to a tag selector. Returns a MessageSelector unchanged."""
        return selector if isinstance(selector, MessageSelector) else cls(selector or SUBSCRIBE_ALL)
