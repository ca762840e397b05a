"""Tests that invalid expressions and expressions that are too large are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.filter import IllegalExpression, SqlFilter, compile_sql
from rocketmq_broker.filter.parser import MAX_BRACKETS, MAX_DEPTH, MAX_OPERANDS, MAX_TEXTS
from rocketmq_broker.filter.sql_filter import MAX_LENGTH


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("", "the expression is empty"),
        ("a >", "expected a property or a value, not the end"),
        ("a > 1 b", "expected AND or OR, not 'b' at character 7"),
        ("a LIKE 'x%'", "expected AND or OR, not 'LIKE' at character 3"),
        ("(a = 1", "expected \\), not the end"),
        ("a = 1 AND 5", "expected a condition before the end of the expression, not a value"),
        ("'abc'", "expected a condition"),
        ("a = 1 ; b", "unexpected ';' at character 7"),
        ("a = 'x", 'unexpected "\'" at character 5'),
        ("a != 1", "unexpected '!' at character 3"),
        ("a = NULL", "use IS NULL or IS NOT NULL"),
        ("TRUE = 1", "cannot be compared with a number or text"),
        ("a > 'x'", "compares only numbers and properties"),
        ("a > TRUE", "compares only numbers and properties"),
        ("a > (b = 1)", "compares only numbers and properties"),
        ("NOT a > 1", "compares only numbers and properties"),
        ("a BETWEEN 5 AND 1", "5 is greater than 1"),
        ("a BETWEEN 5.5 AND 5", "5.5 is greater than 5"),
        ("a IN (1, 2)", "expected a string literal in quotes, not '1'"),
        ("a IN ()", "expected a string literal in quotes"),
        ("5 IN ('5')", "expected a property before 'IN'"),
        ("a IS 5", "expected NULL, not '5'"),
        ("a NOT = 5", "expected IN, not '='"),
        ("a = 9223372036854775808", "number too large: '9223372036854775808' at character 5, at most 9223372036854775807"),
        ("a = " + "9" * 5000, "number too large"),
        ("a > 1e309", "number too large"),
        ("a > 0.0", "write zero as 0"),
        ("a = 007", "expected AND or OR, not '0'"),
    ],
)
def test_the_complaint_says_what_is_wrong_and_where(expression: str, complaint: str) -> None:
    with pytest.raises(IllegalExpression, match=complaint):
        compile_sql(expression)


@pytest.mark.parametrize(
    ("just_allowed", "too_large"),
    [
        ("a = '" + "x" * (MAX_LENGTH - 6) + "'", "a = '" + "x" * (MAX_LENGTH - 5) + "'"),
        ("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH, "(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1)),
        ("a >" + "-" * MAX_DEPTH + "1", "a > " + "- " * (MAX_DEPTH + 1) + "1"),
        (" OR ".join(["(a)"] * MAX_BRACKETS), " OR ".join(["(a)"] * (MAX_BRACKETS + 1))),
        (" OR ".join(["a"] * MAX_OPERANDS), " OR ".join(["a"] * (MAX_OPERANDS + 1))),
        ("a" + " IS NULL" * (MAX_OPERANDS - 1), "a" + " IS NULL" * MAX_OPERANDS),
        ("a" + " = b" * (MAX_OPERANDS - 1), "a" + " = b" * MAX_OPERANDS),
        ("a IN ('1'" + ",'1'" * (MAX_TEXTS - 1) + ")", "a IN ('1'" + ",'1'" * MAX_TEXTS + ")"),
    ],
)
def test_there_is_a_limit_to_everything_and_what_is_within_it_can_be_evaluated(just_allowed: str, too_large: str) -> None:
    assert compile_sql(just_allowed).matches(b"a\x011\x02b\x012") in (True, False)
    with pytest.raises(IllegalExpression, match=r"too many|too long"):
        compile_sql(too_large)


def test_what_a_filter_costs_grows_with_its_operands_and_with_the_properties() -> None:
    one, two = compile_sql("a = 1"), compile_sql("a = 1 OR b IS NULL")
    assert one.cost_ns(b"") < one.cost_ns(bytes(1000)) < two.cost_ns(bytes(1000))


words = st.sampled_from(
    ["a", "b", "1", "1.5", "'x'", "(", ")", ",", "NOT", "AND", "OR", "IN", "IS", "NULL", "BETWEEN", "=", "<>", "-", "--", "/*"]
)


@given(st.text(max_size=40) | st.lists(words, max_size=12).map(" ".join), st.binary(max_size=40))
def test_any_text_is_an_expression_or_refused_and_any_bytes_are_properties(expression: str, encoded: bytes) -> None:
    try:
        compiled = compile_sql(expression)
    except IllegalExpression:
        return
    assert isinstance(compiled, SqlFilter)
    assert compiled.matches(encoded) in (True, False)
