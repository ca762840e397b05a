"""Splits an expression into the tokens that RocketMQ's SelectorParser.jj defines."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from rocketmq_broker.filter.errors import IllegalExpression

_MAX_SHOWN_LENGTH: Final = 40
_KEYWORDS: Final = frozenset({"NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"})

_TOKEN: Final = re.compile(
    r"""
      (?P<skipped> [ \t\n\r\f]+ | --[^\n\r]*[\n\r] | /\*(?s:.*?)\*/ )
    | (?P<decimal_fraction> \d+\.\d*(?:e[+-]?\d+)? | \.\d+(?:e[+-]?\d+)? | \d+e[+-]?\d+ )
    | (?P<whole_number> 0 | [1-9]\d*l? )
    | (?P<text> '(?:''|[^'])*' )
    | (?P<name> [a-z_$][a-z0-9_$]* )
    | (?P<symbol> <> | >= | <= | [=<>(),+-] )
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)


class TokenKind(Enum):
    """The kind of a token: a number, a string, a name, a symbol or keyword, or the end of the expression."""

    WHOLE_NUMBER = "whole_number"
    DECIMAL_FRACTION = "decimal_fraction"
    TEXT = "text"
    NAME = "name"
    WORD = "word"
    """A symbol, or a keyword in capital letters."""
    END = "end"


class Token(NamedTuple):
    """A token, and the position of its first character, counted from 1."""

    kind: TokenKind
    text: str
    position: int

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return "the end of the expression"
        text = self.text if len(self.text) <= _MAX_SHOWN_LENGTH else f"{self.text[:_MAX_SHOWN_LENGTH]}..."
        return f"{text!r} at character {self.position}"

    def is_word(self, *words: str) -> bool:
        """Returns whether the token is one of these symbols or keywords."""
        return self.kind is TokenKind.WORD and self.text in words


def tokens_of(expression: str) -> Iterator[Token]:
    """Yields the tokens of the expression, followed by END. Raises IllegalExpression if a character does not begin a token."""
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise IllegalExpression(f"unexpected {expression[position]!r} at character {position + 1}")
        position = match.end()
        kind, text = match.lastgroup, match[0]
        if kind == "symbol":
            yield Token(TokenKind.WORD, text, match.start() + 1)
        elif kind == "name" and text.upper() in _KEYWORDS:
            yield Token(TokenKind.WORD, text.upper(), match.start() + 1)
        elif kind != "skipped":
            yield Token(TokenKind(kind), text, match.start() + 1)
    yield Token(TokenKind.END, "", position + 1)
