"""Conditions, which are true, false or unknown (None) for a message (RocketMQ's BooleanExpression)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from rocketmq_broker.filter import conversion
from rocketmq_broker.filter.conversion import Comparison, Kind
from rocketmq_broker.filter.operands import Operand, Property

ACCEPTED: Final[Mapping[str, frozenset[int]]] = MappingProxyType(
    {"<": frozenset({-1}), "<=": frozenset({-1, 0}), ">": frozenset({1}), ">=": frozenset({0, 1})}
)
"""Maps each comparison symbol to the results of comparing the operands (-1, 0 or 1) for which the condition is true."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Base class of all conditions."""

    kind: Kind = field(default=Kind.BOOLEAN, init=False, repr=False)

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns whether the condition is true for a message with these properties; None if unknown. Raises EvaluationFailed."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Truth(Condition):
    """An operand used as a condition: TRUE, FALSE, NULL or a property.

    A property is never true, because its value is a string.
    """

    operand: Operand

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns whether the operand is TRUE; None if it is unknown."""
        value = self.operand.evaluate(properties)
        return None if value is None else value is True


@dataclass(frozen=True, slots=True)
class Or(Condition):
    """A disjunction: true if any condition is true, else unknown if any is unknown.

    Evaluation stops at the first true condition.
    """

    conditions: tuple[Condition, ...]

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns whether any condition is true; None if the result is unknown."""
        result: bool | None = False
        for condition in self.conditions:
            value = condition.evaluate(properties)
            if value:
                return True
            if value is None:
                result = None
        return result


@dataclass(frozen=True, slots=True)
class And(Condition):
    """A conjunction: false if any condition is false, else unknown if any is unknown. A false condition ends the evaluation."""

    conditions: tuple[Condition, ...]

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns whether all conditions are true; None if the result is unknown."""
        result: bool | None = True
        for condition in self.conditions:
            value = condition.evaluate(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The negation of a condition. The negation of unknown is unknown."""

    condition: Condition

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns the negation of the condition's value."""
        value = self.condition.evaluate(properties)
        return None if value is None else not value


@dataclass(frozen=True, slots=True)
class Equal(Condition):
    """The equality of two operands.

    True if both operands are unknown, unknown if only the first is unknown, and false if only the second is unknown.
    """

    left: Operand
    right: Operand
    _compare: Comparison = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compare", conversion.equality(self.left.kind, self.right.kind))

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns whether the operands are equal; None if the result is unknown."""
        left, right = self.left.evaluate(properties), self.right.evaluate(properties)
        if left is None:
            return True if right is None else None
        return right is not None and self._compare(left, right) == 0


@dataclass(frozen=True, slots=True)
class Ordered(Condition):
    """A comparison of two operands by <, <=, > or >=. Unknown if either operand is unknown."""

    left: Operand
    symbol: str
    right: Operand
    _compare: Comparison = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compare", conversion.order(self.left.kind, self.right.kind))

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns whether the comparison is true; None if an operand is unknown."""
        left = self.left.evaluate(properties)
        if left is None:
            return None
        right = self.right.evaluate(properties)
        return None if right is None else self._compare(left, right) in ACCEPTED[self.symbol]


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    """The test IS NULL: true if the operand is unknown. A property is unknown if the message does not have it."""

    operand: Operand

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns whether the operand is unknown."""
        return self.operand.evaluate(properties) is None


@dataclass(frozen=True, slots=True)
class In(Condition):
    """The test IN: true if the property equals one of the strings."""

    operand: Property
    texts: frozenset[str]

    def evaluate(self, properties: bytes) -> bool | None:
        """Returns whether the property is one of the strings; None if it is missing."""
        value = self.operand.evaluate(properties)
        return None if value is None else value in self.texts
