"""Conditions: what is true, false or unknown (None) of a message (RocketMQ's BooleanExpression and its kin)."""

from __future__ import annotations

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
"""By symbol, how the first operand may compare with the second."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Base of all conditions."""

    kind: Kind = field(default=Kind.BOOLEAN, init=False, repr=False)

    def evaluate(self, properties: bytes) -> bool | None:
        """Whether it is true of a message with these encoded properties; None: unknown. Raises EvaluationFailed."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Truth(Condition):
    """An operand that stands where a condition is needed: TRUE, FALSE or NULL. A property is never true: it is a text."""

    operand: Operand

    def evaluate(self, properties: bytes) -> bool | None:
        """What the operand says."""
        value = self.operand.evaluate(properties)
        return None if value is None else value is True


@dataclass(frozen=True, slots=True)
class Or(Condition):
    """True if one of its conditions is true, else unknown if one is unknown. Those behind a true one are not looked at."""

    conditions: tuple[Condition, ...]

    def evaluate(self, properties: bytes) -> bool | None:
        """Looks at one after the other."""
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
    """False if one of its conditions is false, else unknown if one is unknown. Those behind a false one are not looked at."""

    conditions: tuple[Condition, ...]

    def evaluate(self, properties: bytes) -> bool | None:
        """Looks at one after the other."""
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
    """The opposite; unknown stays unknown."""

    condition: Condition

    def evaluate(self, properties: bytes) -> bool | None:
        """The opposite of the condition."""
        value = self.condition.evaluate(properties)
        return None if value is None else not value


@dataclass(frozen=True, slots=True)
class Equal(Condition):
    """Whether two operands are equal. Two unknown ones are; if only the first is unknown, so is the answer, else it is false."""

    left: Operand
    right: Operand
    _compare: Comparison = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compare", conversion.equality(self.left.kind, self.right.kind))

    def evaluate(self, properties: bytes) -> bool | None:
        """Compares them."""
        left, right = self.left.evaluate(properties), self.right.evaluate(properties)
        if left is None:
            return True if right is None else None
        return right is not None and self._compare(left, right) == 0


@dataclass(frozen=True, slots=True)
class Ordered(Condition):
    """Whether the first operand is less than the second, or what else the symbol says. Unknown if one of them is."""

    left: Operand
    symbol: str
    right: Operand
    _compare: Comparison = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compare", conversion.order(self.left.kind, self.right.kind))

    def evaluate(self, properties: bytes) -> bool | None:
        """Compares them."""
        left = self.left.evaluate(properties)
        if left is None:
            return None
        right = self.right.evaluate(properties)
        return None if right is None else self._compare(left, right) in ACCEPTED[self.symbol]


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    """Whether an operand is unknown; of a property, whether it is missing."""

    operand: Operand

    def evaluate(self, properties: bytes) -> bool | None:
        """Looks at the operand."""
        return self.operand.evaluate(properties) is None


@dataclass(frozen=True, slots=True)
class In(Condition):
    """Whether a property is one of these texts."""

    operand: Property
    texts: frozenset[str]

    def evaluate(self, properties: bytes) -> bool | None:
        """Looks for the property among them."""
        value = self.operand.evaluate(properties)
        return None if value is None else value in self.texts
