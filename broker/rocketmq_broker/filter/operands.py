"""Evaluates the operands of comparisons: properties, literals and their negations (RocketMQ's Expression)."""

from dataclasses import dataclass, field
from typing import Final, Protocol

from rocketmq_broker.filter.conversion import NUMBERS, Kind, Value
from rocketmq_broker.message.properties import beginning


class Operand(Protocol):
    """An expression that has a value for each message. A condition is an operand of kind BOOLEAN."""

    @property
    def kind(self) -> Kind:
        """Returns the type of the operand's known values."""

    def evaluate(self, properties: bytes) -> Value:
        """Returns the operand's value for a message with these properties; None if it is unknown. Raises EvaluationFailed."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, a number, TRUE, FALSE or NULL."""

    kind: Kind
    value: Value

    def evaluate(self, properties: bytes) -> Value:
        """Returns the literal's value."""
        return self.value


_MAX_EMPTY: Final = 8
"""The maximum number of empty properties of the same name that a search skips before it gives up."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the message. If its name occurs more than once, the last non-empty value counts, as in Apache's broker."""

    name: str
    kind: Kind = Kind.TEXT
    _if_first: bytes = field(init=False, repr=False)
    _among_others: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_if_first", beginning(self.name))
        object.__setattr__(self, "_among_others", b"\x02" + self._if_first)

    def evaluate(self, properties: bytes) -> str | None:
        """Returns the property's value; None if it is missing."""
        end = len(properties)
        for _ in range(_MAX_EMPTY):
            found = properties.rfind(self._among_others, 0, end)
            if found < 0 and not properties.startswith(self._if_first):
                return None
            start = found + 1 + len(self._if_first)
            stop = properties.find(b"\x02", start)
            if value := properties[start : len(properties) if stop < 0 else stop]:
                return value.decode(errors="replace")
            if found < 0:
                break
            end = found
        return None


@dataclass(frozen=True, slots=True)
class Negation:
    """The negation of a number literal. The negation of any other operand, such as a property, is unknown."""

    operand: Operand
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.operand.kind if self.operand.kind in NUMBERS else Kind.NOTHING)

    def evaluate(self, properties: bytes) -> Value:
        """Returns the number with its sign changed; None if the operand is not a number."""
        value = self.operand.evaluate(properties)
        return -value if self.kind is not Kind.NOTHING and isinstance(value, int | float) else None
