"""Tests how expressions evaluate. tests/foreign/apache/test_sql92_expressions.py compares them with RocketMQ's own filter."""

import pytest

from rocketmq_broker.filter import compile_sql
from rocketmq_broker.filter.errors import EvaluationFailed
from rocketmq_broker.message import properties

MESSAGE = {"a": "5", "f": "3.14", "s": "abc", "yes": "true", "big": "3000000000", "nan": "NaN", "zero": "0.0", "below": "-0.0"}


def answer(expression: str, **named: str) -> bool | str | None:
    """Evaluates the expression. Returns True, False, None for unknown, or "fails"."""
    try:
        return compile_sql(expression).condition.evaluate(properties.encode(named or MESSAGE))
    except EvaluationFailed:
        return "fails"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a = 5", True),
        ("5 = a", True),
        ("a <> 5", False),
        ("a > 4 AND a < 6", True),
        ("a >= 5 AND a <= 5", True),
        ("a > 5 OR a < 5", False),
        ("a BETWEEN 5 AND 7", True),
        ("a NOT BETWEEN 5 AND 7", False),
        ("s = 'abc'", True),
        ("s <> 'ABC'", True),
        ("s IN ('x', 'abc')", True),
        ("s NOT IN ('x', 'abc')", False),
        ("s IS NULL", False),
        ("missing IS NULL", True),
        ("s IS NOT NULL", True),
        ("f > 3.1E0", True),
        ("a > -1", True),
        ("a > +4", True),
        ("yes = TRUE", True),
        ("s = TRUE", False),
        ("a = 5 = TRUE", True),
        ("TRUE", True),
        ("NULL", None),
        ("not (a = 4)", True),
        ("a = 5 -- a remark\n AND /* another */ s = 'abc'", True),
        ("A = 5", None),
    ],
)
def test_an_expression_says_of_a_message(expression: str, expected: bool | None) -> None:
    assert answer(expression) is expected


@pytest.mark.parametrize("expression", ["missing = 5", "missing > 5", "missing <> 5", "missing IN ('5')", "NOT (missing = 5)"])
def test_a_missing_property_is_neither_equal_nor_unequal(expression: str) -> None:
    assert answer(expression) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("missing = 1 OR a = 5", True),
        ("missing = 1 OR a = 4", None),
        ("missing = 1 AND a = 5", None),
        ("missing = 1 AND a = 4", False),
        ("missing = other", True),
        ("a = missing", False),
    ],
)
def test_unknown_joined_with_what_is_known(expression: str, expected: bool | None) -> None:
    assert answer(expression) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("f > 3", "fails"),
        ("s = 5", "fails"),
        ("big > 3", "fails"),
        ("big > 3000000001", False),
        ("big > 3.0", True),
        ("s > 3.0", "fails"),
        ("f > a", False),
        ("s > a", "fails"),
        ("nan > 1e308", True),
        ("zero > below", True),
        ("TRUE = yes", "fails"),
        ("5 = TRUE", False),
        ("a <> TRUE", True),
    ],
)
def test_the_other_side_decides_how_a_text_is_read(expression: str, expected: bool | str) -> None:
    assert answer(expression) == expected


@pytest.mark.parametrize("text", ["+5", "005", "0" * 1000 + "5"])
def test_a_whole_number_may_have_a_sign_and_zeros(text: str) -> None:
    assert answer("a = 5", a=text) is True


@pytest.mark.parametrize("text", [" 5.0 ", "5d", "5.0F", "0.5e1", "0x1.4p2", "5."])
def test_a_fraction_is_written_as_in_java(text: str) -> None:
    assert answer("a >= 5.0 AND a <= 5.0", a=text) is True


@pytest.mark.parametrize(
    ("text", "expected"), [("0x1p99999", True), ("-0x1p99999", False), ("1e999", True), ("-Infinity", False)]
)
def test_a_fraction_without_end_is_infinite(text: str, expected: bool) -> None:
    assert answer("a > 1e308", a=text) is expected


@pytest.mark.parametrize("text", ["five", "", "5_0", "0x5", "1" * 1025, "infinity"])
def test_other_texts_are_no_fraction(text: str) -> None:
    assert answer("a > 1.5", a=text or "-") == "fails"


def test_not_binds_closest() -> None:
    assert answer("NOT a = 5") is False
    assert answer("NOT (a = 5)") is False
    assert answer("NOT missing = 5") is None


def test_a_property_by_itself_is_never_true() -> None:
    assert [answer("yes"), answer("NOT yes"), answer("missing"), answer("yes OR a = 5")] == [False, True, None, True]


def test_what_is_behind_a_true_alternative_is_not_looked_at() -> None:
    assert answer("a = 5 OR s > 1.5") is True
    assert answer("s > 1.5 OR a = 5") == "fails"


def test_a_message_is_wanted_only_if_its_condition_is_true() -> None:
    encoded = properties.encode(MESSAGE)
    wanted = [expression for expression in ("a = 5", "a = 4", "missing = 5", "s = 5") if compile_sql(expression).matches(encoded)]
    assert wanted == ["a = 5"]


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (b"a\x011\x02a\x012", True),
        (b"a\x012\x02a\x011", False),
        (b"a\x012\x02a\x01", True),
        (b"aa\x012\x02xa\x012", None),
        (b"a\x01\x02b\x012", None),
        (b"b\x01a\x022", None),
        (b"a\x012" + b"\x02a\x01" * 9, None),
        (b"", None),
    ],
)
def test_of_several_properties_of_one_name_the_last_with_a_value_counts(encoded: bytes, expected: bool | None) -> None:
    assert compile_sql("a = 2").condition.evaluate(encoded) is expected
