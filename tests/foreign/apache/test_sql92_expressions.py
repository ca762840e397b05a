"""Tests that this project's filter and RocketMQ's evaluate expressions and properties identically."""

from collections.abc import Iterator

import pytest

from rocketmq_broker.filter import IllegalExpression, compile_sql
from rocketmq_broker.filter.errors import EvaluationFailed
from tests.foreign.apache.filter.expressions import Maker
from tests.foreign.apache.filter.session import ApachesFilter, apaches_filter

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.timeout(900)]
EXPRESSIONS = 2000
ANSWERS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


@pytest.fixture(scope="module")
def apaches() -> Iterator[ApachesFilter]:
    with apaches_filter() as running:
        yield running


def our_answer(expression: str, encoded: bytes) -> str:
    try:
        return ANSWERS[compile_sql(expression).condition.evaluate(encoded)]
    except IllegalExpression:
        return "ILLEGAL"
    except EvaluationFailed:
        return "FAILED"


@pytest.mark.parametrize("seed", range(10))
def test_any_expression_says_the_same_of_any_message(apaches: ApachesFilter, seed: int) -> None:
    maker = Maker(seed)
    questions = [(maker.expression(), maker.properties()) for _ in range(EXPRESSIONS)]
    theirs = apaches.answers(questions)
    ours = [our_answer(*question) for question in questions]
    assert [found for found in zip(questions, theirs, ours, strict=True) if found[1] != found[2]] == []
    assert set(theirs) == {"TRUE", "FALSE", "UNKNOWN", "FAILED", "ILLEGAL"}
