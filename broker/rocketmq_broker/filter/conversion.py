"""Converts the string value of a property to the type of the other operand, as Java's valueOf does (ComparisonExpression).

| other operand | the property's value |
| --- | --- |
| 32-bit integer | must be a 32-bit integer: `a > 3` fails for a message with `a` = 3.5 or `a` = 3000000000 |
| larger integer | must be a 64-bit integer |
| fraction | must be a number |
| TRUE or FALSE | `true` is true, every other string is false |
| property | compared as strings by = and <>, and as numbers by <, <=, > and >= |
"""

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import Final

from rocketmq_broker.filter.errors import EvaluationFailed

Value = str | int | float | bool | None
Comparison = Callable[[Value, Value], int]
"""A function that compares two values.

It returns a negative number if the first value is less than the second, 0 if they are equal, and a positive number if it is
greater. Raises EvaluationFailed if the values cannot be compared.
"""


class Kind(Enum):
    """The types of an operand's known values."""

    TEXT = "text"
    INTEGER = "a 32-bit integer"
    LONG = "a 64-bit integer"
    DOUBLE = "a fraction"
    BOOLEAN = "true or false"
    NOTHING = "always unknown"


MAX_NUMBER_LENGTH: Final = 1024
"""The maximum number of characters in a number. Parsing a longer string would take too long."""
NUMBERS: Final = frozenset({Kind.INTEGER, Kind.LONG, Kind.DOUBLE})

_INTEGER = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(
    r"""[\x00-\x20]* [+-]? (?: NaN | Infinity
        | (?: \d+(?:\.\d*)? | \.\d+ ) (?: [eE][+-]?\d+ )? [fFdD]?
        | 0[xX] (?: [0-9a-fA-F]+\.? | [0-9a-fA-F]*\.[0-9a-fA-F]+ ) [pP][+-]?\d+ [fFdD]?
    ) [\x00-\x20]*""",
    re.VERBOSE | re.ASCII,
)
_WHITE = "".join(map(chr, range(0x21)))
"""The characters that Java's String.trim removes."""


def equality(left: Kind, right: Kind) -> Comparison:
    """Returns the comparison that = and <> use for operands of these kinds."""
    if left is right is Kind.TEXT:
        return _compare
    return _comparison(left, right)


def order(left: Kind, right: Kind) -> Comparison:
    """Returns the comparison that <, <=, > and >= use for operands of these kinds. Two strings are compared as numbers."""
    if left is right is Kind.TEXT:
        return _compare_as_doubles
    return _comparison(left, right)


def to_integer(value: Value, bits: int) -> int:
    """Converts a string to an integer of `bits` bits, as Java's Integer.valueOf and Long.valueOf do.

    Returns a number unchanged. Raises EvaluationFailed if the string is not an integer of that size.
    """
    if isinstance(value, int):
        return value
    match = _INTEGER.fullmatch(_numeral(value))
    number = int(match[0]) if match is not None else None
    if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise EvaluationFailed(f"{value!r} is not a {bits}-bit integer")
    return number


def to_double(value: Value) -> float:
    """Converts a string, which may be hexadecimal, as Java's Double.valueOf does.

    Raises EvaluationFailed if it is not a number.
    """
    if isinstance(value, int | float):
        return float(value)
    text = _numeral(value)
    if _DOUBLE.fullmatch(text) is None:
        raise EvaluationFailed(f"{value!r} is not a number")
    text = text.strip(_WHITE)
    digits = text[:-1] if text[-1] in "fFdD" else text
    try:
        return float.fromhex(digits) if "x" in text.lower() else float(digits)
    except OverflowError:
        return math.copysign(math.inf, -1 if text[0] == "-" else 1)


def compare_doubles(left: float, right: float) -> int:
    """Compares two numbers as Java's Double.compareTo does: -0.0 is less than 0.0, and NaN is greater than every other number."""
    if left < right:
        return -1
    if left > right:
        return 1
    return _compare(_rank(left), _rank(right))


def _numeral(value: Value) -> str:
    text = str(value)
    if len(text) > MAX_NUMBER_LENGTH:
        raise EvaluationFailed(f"number too long: {len(text)} characters, at most {MAX_NUMBER_LENGTH}")
    return text


def _rank(number: float) -> float:
    return 2.0 if math.isnan(number) else math.copysign(1.0, number)


def _comparison(left: Kind, right: Kind) -> Comparison:
    """Returns the comparison for operands that are not both strings (ComparisonExpression.__compare)."""
    kinds = {left, right}
    if kinds == {Kind.BOOLEAN, Kind.TEXT}:
        return _compare_with_boolean if right is Kind.BOOLEAN else _fail
    if Kind.BOOLEAN in kinds and kinds & NUMBERS:
        return lambda first, second: -1
    if Kind.DOUBLE in kinds:
        return _compare_as_doubles
    if Kind.TEXT in kinds:
        bits = 32 if Kind.INTEGER in kinds else 64
        return lambda first, second: _compare(to_integer(first, bits), to_integer(second, bits))
    return _compare


def _compare_as_doubles(left: Value, right: Value) -> int:
    return compare_doubles(to_double(left), to_double(right))


def _compare_with_boolean(text: Value, boolean: Value) -> int:
    return _compare(str(text).lower() == "true", boolean)


def _fail(boolean: Value, text: Value) -> int:
    raise EvaluationFailed(f"RocketMQ cannot compare {boolean} with the text {text!r}: write the text on the left")


def _compare(left: Value, right: Value) -> int:
    return (left > right) - (left < right)  # type: ignore[operator]
