"""Generates expressions and properties for the comparison of two filters."""

import random
from typing import Final

NAMES = ("a", "b", "A", "_x$", "missing")
NUMBERS = (
    "0", "1", "3", "5", "10", "42", "100L", "7l", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808",
    "3.14", "5.", ".5", "5e1", "5.5E-1", "1e308", "1e309", "0.0", "1e-400", "007", "0L", "1.5e", "1d",
)  # fmt: skip
TEXTS = ("''", "'abc'", "'3'", "'3.14'", "'it''s'", "'true'", "'Grüße ✓'", "'a -- b'", "'/* x */'", "'\n'")
VALUES = (
    "3", "-3", "+3", "03", "5", "10", "3.0", "3.14", " 3 ", "3d", "3f", "5L", "1e1", "2147483647", "2147483648", "-2147483648",
    "-2147483649", "9223372036854775808", "-9223372036854775808", "NaN", "-Infinity", "Infinity", "infinity", "nan", "0", "-0",
    "0.0", "-0.0", "0x10", "0x1p3", "0x.8p1f", "0x1.8p-1d", "0X1P99999", "-0x1p99999", "1e99999", ".5", "5.", ".", "-", "",
    "1_000", "\u00a03", "\x003", "\u0663", "abc", "it's", "true", "TRUE", "False", "Grüße ✓", "'", "\n", "0" * 30 + "7",
    "1" * 40, "1" * 400, "3.14" + "0" * 400,
)  # fmt: skip
WORDS = (
    "AND", "or", "Not", "BETWEEN", "in", "TRUE", "false", "NULL", "is", "LIKE", "=", "<>", "!=", ">", ">=", "<", "<=", "(", ")",
    ",", "+", "-", "--", "-- c\n", "/* c */", "/**/", "/* * */", "/*", "''", "'", ";", "é", "a.b", "1a", "a1",
)  # fmt: skip

COMPARISONS = ("=", "<>", ">", ">=", "<", "<=")
JOINTS = (" AND ", " OR ", " and ", "\tOr\n", " AND/* */", " = ", " <> ")
DEEPEST: Final = 3


class Maker:
    """Generates random expressions and properties. Equal seeds give equal results."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._one_of = self._random.choice

    def expression(self) -> str:
        """Returns an expression. Most are valid; some are truncated or are sequences of words."""
        kind = self._random.randrange(10)
        if kind == 0:
            return " ".join(self._one_of([self._one_of(WORDS), self._operand(0)]) for _ in range(self._random.randrange(8)))
        made = self._condition(DEEPEST)
        return made[: self._random.randrange(len(made) + 1)] if kind == 1 else made

    def properties(self) -> bytes:
        """Returns encoded properties. Names may be repeated, and names and values may be empty."""
        names = (*NAMES[:-1], "xa", "")
        pairs = [f"{self._one_of(names)}\x01{self._one_of(VALUES)}" for _ in range(self._random.randrange(6))]
        return "\x02".join(pairs).encode()

    def _condition(self, depth: int) -> str:
        kind = self._random.randrange(6) if depth else 0
        if kind <= 2:
            return self._comparison(depth)
        if kind == 3:
            return f"{self._one_of(['', 'NOT ', 'not'])}({self._condition(depth - 1)})"
        return self._condition(depth - 1) + self._one_of(JOINTS) + self._condition(depth - 1)

    def _comparison(self, depth: int) -> str:
        left = self._operand(depth)
        match self._random.randrange(8):
            case 0:
                return f"{left} {self._one_of(['IS NULL', 'is not null'])}"
            case 1:
                return f"{left} {self._one_of(['BETWEEN', 'not between'])} {self._operand(0)} AND {self._operand(0)}"
            case 2:
                texts = ",".join(self._text() for _ in range(self._random.randrange(1, 7)))
                return f"{self._one_of(NAMES)} {self._one_of(['IN', 'NOT IN'])} ({texts})"
            case 3:
                return left
        return f"{left}{self._one_of(['', ' '])}{self._one_of(COMPARISONS)} {self._operand(depth)}"

    def _operand(self, depth: int) -> str:
        kind = self._random.randrange(12)
        if kind < 5:
            return self._one_of(NAMES)
        if kind < 8:
            return self._number()
        if kind == 8:
            return self._text()
        if kind == 9:
            return self._one_of(["TRUE", "FALSE", "NULL"])
        if kind == 10 and depth:
            return f"({self._condition(depth - 1)})"
        return self._one_of(["-", "+", "NOT ", "- -", "-+"]) + self._one_of([self._one_of(NAMES), self._number(), "(a > 1)"])

    def _number(self) -> str:
        exact = str(self._random.randrange(1 << self._random.randrange(1, 66)))
        return self._one_of([self._one_of(NUMBERS), self._one_of(NUMBERS), exact, repr(self._random.uniform(0, 10))])

    def _text(self) -> str:
        value = self._one_of(VALUES).replace("'", "''")
        return self._one_of([self._one_of(TEXTS), f"'{value}'"])
