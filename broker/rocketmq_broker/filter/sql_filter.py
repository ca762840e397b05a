"""Compiles a filter expression (RocketMQ's SqlFilter and ExpressionMessageFilter)."""

from dataclasses import dataclass
from typing import Final

from rocketmq_broker.filter.conditions import Condition
from rocketmq_broker.filter.errors import EvaluationFailed, IllegalExpression
from rocketmq_broker.filter.parser import parse

MAX_LENGTH: Final = 8192
"""The maximum number of characters in an expression. Compiling an expression of this length takes a few milliseconds."""

_OPERAND_NS = 1000
_BYTE_NS = 3


@dataclass(frozen=True, slots=True)
class SqlFilter:
    """The compiled filter of a subscription."""

    expression: str
    condition: Condition
    operand_count: int
    """The number of properties and values in the expression."""

    def cost_ns(self, properties: bytes) -> int:
        """Returns an upper estimate of the duration of `matches`, in nanoseconds.

        Evaluating an operand may search all properties.
        """
        return self.operand_count * (_OPERAND_NS + _BYTE_NS * len(properties))

    def matches(self, properties: bytes) -> bool:
        """Returns whether a message with these encoded properties matches; False if the evaluation fails."""
        try:
            return self.condition.evaluate(properties) is True
        except EvaluationFailed:
            return False


def compile_sql(expression: str) -> SqlFilter:
    """Compiles an expression. Raises IllegalExpression."""
    if not expression:
        raise IllegalExpression("the expression is empty")
    if len(expression) > MAX_LENGTH:
        raise IllegalExpression(f"expression too long: {len(expression)} characters, at most {MAX_LENGTH}")
    condition, operand_count = parse(expression)
    return SqlFilter(expression, condition, operand_count)
