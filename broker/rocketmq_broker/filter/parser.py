"""Parses tokens into a condition (RocketMQ's SelectorParser.jj, with the checks in the constructors of its expressions).

    condition   = conjunction { OR conjunction }
    conjunction = equality { AND equality }
    equality    = comparison { "=" comparison | "<>" comparison | IS [ NOT ] NULL }
    comparison  = sign { ( ">" | ">=" | "<" | "<=" ) sign | [ NOT ] BETWEEN sign AND sign | [ NOT ] IN "(" text { "," text } ")" }
    sign        = { "+" | "-" | NOT } ( text | number | TRUE | FALSE | NULL | property | "(" condition ")" )

A `text` is a string in quotes. NOT has the highest precedence: `NOT a = 1` compares `NOT a` with 1, so write `NOT (a = 1)`.

Apache's parser parses the longest prefix that is a condition and ignores the rest, such as `LIKE 'x'` after a property. Here the
whole expression must be valid.
"""

import math
import sys
from typing import Final, NamedTuple

from rocketmq_broker.filter.conditions import ACCEPTED, And, Condition, Equal, In, IsNull, Not, Or, Ordered, Truth
from rocketmq_broker.filter.conversion import NUMBERS, Kind, order
from rocketmq_broker.filter.errors import IllegalExpression
from rocketmq_broker.filter.operands import Literal, Negation, Operand, Property
from rocketmq_broker.filter.tokens import Token, TokenKind, tokens_of

MAX_OPERANDS: Final = 256
"""The maximum number of properties, literals and IS NULL tests in an expression.

MAX_TEXTS limits the strings after IN instead.
"""
MAX_BRACKETS: Final = 256
"""The maximum number of parentheses, NOT and signs in one expression."""
MAX_DEPTH: Final = 32
"""The maximum depth to which parentheses, NOT and signs are nested."""
MAX_TEXTS: Final = 1024
"""The maximum total number of strings in the IN lists of one expression."""

_MAX_INTEGER: Final = (1 << 31) - 1
_MAX_LONG: Final = (1 << 63) - 1
_MAX_LONG_LENGTH: Final = len(str(_MAX_LONG))
_CONSTANTS: Final = {
    "TRUE": Literal(Kind.BOOLEAN, True),
    "FALSE": Literal(Kind.BOOLEAN, False),
    "NULL": Literal(Kind.NOTHING, None),
}


class Parsed(NamedTuple):
    """A parsed condition, and the number of its operands."""

    condition: Condition
    operand_count: int


def parse(expression: str) -> Parsed:
    """Parses an expression. Raises IllegalExpression."""
    return _Parser(expression).parse()


class _Parser:
    """A parser of one expression; `_token` is the next token to read."""

    def __init__(self, expression: str) -> None:
        self._tokens = tokens_of(expression)
        self._token = next(self._tokens)
        self._depth = 0
        self._brackets = 0
        self._operands = 0
        self._texts = 0

    def parse(self) -> Parsed:
        condition = self._as_condition(self._condition())
        if self._token.kind is not TokenKind.END:
            raise IllegalExpression(f"expected AND or OR, not {self._token}")
        return Parsed(condition, self._operands)

    def _condition(self) -> Operand:
        found = self._conjunction()
        if not self._token.is_word("OR"):
            return found
        conditions = [self._as_condition(found)]
        while self._take("OR"):
            conditions.append(self._as_condition(self._conjunction()))
        return Or(tuple(conditions))

    def _conjunction(self) -> Operand:
        found = self._equality()
        if not self._token.is_word("AND"):
            return found
        conditions = [self._as_condition(found)]
        while self._take("AND"):
            conditions.append(self._as_condition(self._equality()))
        return And(tuple(conditions))

    def _equality(self) -> Operand:
        left = self._comparison()
        while True:
            token = self._token
            if self._take("="):
                left = _equal(left, self._comparison(), token)
            elif self._take("<>"):
                left = Not(_equal(left, self._comparison(), token))
            elif self._take("IS"):
                self._count_operand()
                is_negated = self._take("NOT")
                self._expect("NULL")
                left = Not(IsNull(left)) if is_negated else IsNull(left)
            else:
                return left

    def _comparison(self) -> Operand:
        left = self._sign()
        while True:
            token = self._token
            if self._take(*ACCEPTED):
                left = _ordered(left, token.text, self._sign(), token)
            elif self._token.is_word("NOT", "BETWEEN", "IN"):
                left = self._membership(left, is_negated=self._take("NOT"))
            else:
                return left

    def _membership(self, left: Operand, *, is_negated: bool) -> Condition:
        token = self._token
        if self._take("BETWEEN"):
            low = self._sign()
            self._expect("AND")
            high = self._sign()
            if is_negated:
                return Or((_ordered(left, "<", low, token), _ordered(left, ">", high, token)))
            _refuse_empty_range(low, high, token)
            return And((_ordered(left, ">=", low, token), _ordered(left, "<=", high, token)))
        self._expect("IN")
        if not isinstance(left, Property):
            raise IllegalExpression(f"expected a property before {token}")
        condition = In(left, self._text_list())
        return Not(condition) if is_negated else condition

    def _text_list(self) -> frozenset[str]:
        self._expect("(")
        texts = [self._text()]
        while self._take(","):
            texts.append(self._text())
        self._expect(")")
        return frozenset(texts)

    def _text(self) -> str:
        token = self._next()
        if token.kind is not TokenKind.TEXT:
            raise IllegalExpression(f"expected a string literal in quotes, not {token}")
        self._texts += 1
        if self._texts > MAX_TEXTS:
            raise IllegalExpression(f"too many string literals after IN: at most {MAX_TEXTS}")
        return _unquoted(token)

    def _sign(self) -> Operand:
        if not self._token.is_word("+", "-", "NOT", "("):
            return self._operand()
        self._begin_bracket()
        word = self._next().text
        found = self._condition() if word == "(" else self._sign()
        self._depth -= 1
        match word:
            case "(":
                self._expect(")")
            case "-":
                return Negation(found)
            case "NOT":
                return Not(self._as_condition(found))
        return found

    def _begin_bracket(self) -> None:
        self._brackets += 1
        self._depth += 1
        for count, limit in ((self._brackets, MAX_BRACKETS), (self._depth, MAX_DEPTH)):
            if count > limit:
                nested = "nested " if limit is MAX_DEPTH else ""
                raise IllegalExpression(f"too many {nested}parentheses, NOT and signs before {self._token}: at most {limit}")

    def _operand(self) -> Operand:
        self._count_operand()
        token = self._next()
        match token.kind:
            case TokenKind.NAME:
                return Property(token.text)
            case TokenKind.TEXT:
                return Literal(Kind.TEXT, _unquoted(token))
            case TokenKind.WHOLE_NUMBER:
                return _whole_number(token)
            case TokenKind.DECIMAL_FRACTION:
                return _decimal_fraction(token)
            case TokenKind.WORD if token.text in _CONSTANTS:
                return _CONSTANTS[token.text]
        raise IllegalExpression(f"expected a property or a value, not {token}")

    def _count_operand(self) -> None:
        self._operands += 1
        if self._operands > MAX_OPERANDS:
            raise IllegalExpression(f"too many properties and values: at most {MAX_OPERANDS}")

    def _as_condition(self, operand: Operand) -> Condition:
        if isinstance(operand, Condition):
            return operand
        if isinstance(operand, Property) or operand in _CONSTANTS.values():
            return Truth(operand)
        raise IllegalExpression(f"expected a condition before {self._token}, not a value")

    def _take(self, *words: str) -> bool:
        """Consumes the next token if it is one of these words. Returns whether the token was consumed."""
        is_there = self._token.is_word(*words)
        if is_there:
            self._next()
        return is_there

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise IllegalExpression(f"expected {word}, not {self._token}")

    def _next(self) -> Token:
        token = self._token
        if token.kind is not TokenKind.END:
            self._token = next(self._tokens)
        return token


def _equal(left: Operand, right: Operand, symbol: Token) -> Condition:
    """Returns the equality of two operands. Raises IllegalExpression for operands that RocketMQ does not compare."""
    for operand in (left, right):
        if operand == _CONSTANTS["NULL"]:
            raise IllegalExpression(f"NULL cannot be compared ({symbol}): use IS NULL or IS NOT NULL")
    if isinstance(left, Literal) and isinstance(right, Literal) and left.kind is Kind.BOOLEAN is not right.kind:
        raise IllegalExpression(f"TRUE and FALSE cannot be compared with a number or text ({symbol})")
    return Equal(left, right)


def _ordered(left: Operand, symbol: str, right: Operand, token: Token) -> Condition:
    """Returns the comparison of two operands. Raises IllegalExpression unless both can be numbers."""
    for operand in (left, right):
        if isinstance(operand, Condition) or (isinstance(operand, Literal) and operand.kind not in NUMBERS):
            raise IllegalExpression(f"{token} compares only numbers and properties, not strings or conditions")
    return Ordered(left, symbol, right)


def _refuse_empty_range(low: Operand, high: Operand, token: Token) -> None:
    if isinstance(low, Literal) and isinstance(high, Literal) and {low.kind, high.kind} <= NUMBERS:
        compare = order(high.kind, low.kind)
        if compare(high.value, low.value) < 0:
            raise IllegalExpression(f"{token}: {low.value} is greater than {high.value}")


def _whole_number(token: Token) -> Literal:
    digits = token.text.rstrip("lL")
    if len(digits) > _MAX_LONG_LENGTH or int(digits) > _MAX_LONG:
        raise IllegalExpression(f"number too large: {token}, at most {_MAX_LONG}")
    number = int(digits)
    return Literal(Kind.INTEGER if number <= _MAX_INTEGER else Kind.LONG, number)


def _decimal_fraction(token: Token) -> Literal:
    number = float(token.text)
    if math.isinf(number):
        raise IllegalExpression(f"number too large: {token}, at most {sys.float_info.max}")
    if number == 0:
        raise IllegalExpression(f"RocketMQ does not accept {token}: write zero as 0, without a decimal point")
    return Literal(Kind.DOUBLE, number)


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")
