"""The selection of a topic's messages, by tag or by SQL92 expression (RocketMQ's MessageSelector)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from rocketmq_broker.protocol.bodies.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG, SUBSCRIBE_ALL


@dataclass(frozen=True, slots=True)
class MessageSelector:
    """An expression and its kind. A plain string in its place is an expression by tag."""

    expression: str
    expression_type: str = EXPRESSION_TAG

    @classmethod
    def by_tag(cls, expression: str = SUBSCRIBE_ALL) -> Self:
        """Selects by tag: `*` for all messages, or tags: `a || b`."""
        return cls(expression)

    @classmethod
    def by_sql(cls, expression: str) -> Self:
        """Selects by a condition on properties, `amount > 100 AND region IN ('north', 'south')`, that brokers evaluate.

        They do so only with enablePropertyFilter=true. TAGS is a property like others.
        """
        return cls(expression, EXPRESSION_SQL92)

    @classmethod
    def of(cls, selector: MessageSelector | str | None) -> MessageSelector:
        """Returns the selector itself, or a selector by tag for a string."""
        return selector if isinstance(selector, MessageSelector) else cls(selector or SUBSCRIBE_ALL)
