"""A compiled expression (RocketMQ's SqlFilter and ExpressionMessageFilter)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rocketmq_broker.filter.conditions import Condition
from rocketmq_broker.filter.errors import EvaluationFailed, IllegalExpression
from rocketmq_broker.filter.parser import parse

LONGEST: Final = 8192
"""Characters of an expression. Compiling one takes some milliseconds at most."""

_OPERAND_NS = 1000
_BYTE_NS = 3


@dataclass(frozen=True, slots=True)
class SqlFilter:
    """Says which messages a subscription wants."""

    expression: str
    condition: Condition
    operand_count: int
    """How many properties and values may be looked at."""

    def cost_ns(self, properties: bytes) -> int:
        """About how long `matches` takes at most, in nanoseconds: each property is looked for from the end to the beginning."""
        return self.operand_count * (_OPERAND_NS + _BYTE_NS * len(properties))

    def matches(self, properties: bytes) -> bool:
        """Whether a message with these encoded properties is wanted. One that cannot be compared is not."""
        try:
            return self.condition.evaluate(properties) is True
        except EvaluationFailed:
            return False


def compile_sql(expression: str) -> SqlFilter:
    """The filter that an expression describes. Raises IllegalExpression."""
    if not expression:
        raise IllegalExpression("the expression is empty")
    if len(expression) > LONGEST:
        raise IllegalExpression(f"the expression has {len(expression)} characters; {LONGEST} are allowed")
    condition, operand_count = parse(expression)
    return SqlFilter(expression, condition, operand_count)
