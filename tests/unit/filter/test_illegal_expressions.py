"""What is no expression, and what is too large a one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.filter import IllegalExpression, SqlFilter, compile_sql
from rocketmq_broker.filter.parser import DEEPEST, MAX_BRACKETS, MAX_OPERANDS, MAX_TEXTS
from rocketmq_broker.filter.sql_filter import LONGEST


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("", "the expression is empty"),
        ("a >", "a property or a value is expected, not the end"),
        ("a > 1 b", "complete before 'b' at character 7; AND or OR is expected"),
        ("a LIKE 'x%'", "complete before 'LIKE' at character 3"),
        ("(a = 1", "\\) is expected, not the end"),
        ("a = 1 AND 5", "a condition is expected before the end, not a value"),
        ("'abc'", "a condition is expected"),
        ("a = 1 ; b", "';' at character 7 begins nothing"),
        ("a = 'x", '"\'" at character 5 begins nothing'),
        ("a != 1", "'!' at character 3 begins nothing"),
        ("a = NULL", "IS NULL or IS NOT NULL is meant"),
        ("TRUE = 1", "cannot be compared with a number or text"),
        ("a > 'x'", "orders numbers and properties only"),
        ("a > TRUE", "orders numbers and properties only"),
        ("a > (b = 1)", "orders numbers and properties only"),
        ("NOT a > 1", "orders numbers and properties only"),
        ("a BETWEEN 5 AND 1", "5 is greater than 1"),
        ("a BETWEEN 5.5 AND 5", "5.5 is greater than 5"),
        ("a IN (1, 2)", "a text in quotes is expected, not '1'"),
        ("a IN ()", "a text in quotes is expected"),
        ("5 IN ('5')", "a property is expected before 'IN'"),
        ("a IS 5", "NULL is expected, not '5'"),
        ("a NOT = 5", "IN is expected, not '='"),
        ("a = 9223372036854775808", "is greater than 9223372036854775807"),
        ("a = " + "9" * 5000, "is greater than"),
        ("a > 1e309", "is greater than"),
        ("a > 0.0", "0 is meant"),
        ("a = 007", "complete before '0'"),
    ],
)
def test_the_complaint_says_what_is_wrong_and_where(expression: str, complaint: str) -> None:
    with pytest.raises(IllegalExpression, match=complaint):
        compile_sql(expression)


@pytest.mark.parametrize(
    ("just_allowed", "too_large"),
    [
        ("a = '" + "x" * (LONGEST - 6) + "'", "a = '" + "x" * (LONGEST - 5) + "'"),
        ("(" * DEEPEST + "a" + ")" * DEEPEST, "(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1)),
        ("a >" + "-" * DEEPEST + "1", "a > " + "- " * (DEEPEST + 1) + "1"),
        (" OR ".join(["(a)"] * MAX_BRACKETS), " OR ".join(["(a)"] * (MAX_BRACKETS + 1))),
        (" OR ".join(["a"] * MAX_OPERANDS), " OR ".join(["a"] * (MAX_OPERANDS + 1))),
        ("a" + " IS NULL" * (MAX_OPERANDS - 1), "a" + " IS NULL" * MAX_OPERANDS),
        ("a" + " = b" * (MAX_OPERANDS - 1), "a" + " = b" * MAX_OPERANDS),
        ("a IN ('1'" + ",'1'" * (MAX_TEXTS - 1) + ")", "a IN ('1'" + ",'1'" * MAX_TEXTS + ")"),
    ],
)
def test_there_is_a_limit_to_everything_and_what_is_within_it_can_be_evaluated(just_allowed: str, too_large: str) -> None:
    assert compile_sql(just_allowed).matches(b"a\x011\x02b\x012") in (True, False)
    with pytest.raises(IllegalExpression, match=r"more than|are allowed"):
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
