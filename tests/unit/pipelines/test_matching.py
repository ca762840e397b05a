"""Each class of finding on frames of a row or two."""

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from pipelines.judging.cut_off import CutOff
from pipelines.judging.findings import Finding
from pipelines.matching import match_orders
from pipelines.sources.tables import CREDITS, ORDERS, TRANSACTIONS

CUT_OFF = CutOff(as_of_ms=1_000_000, grace_seconds=100)
OLD = CUT_OFF.judged_until_ms
YOUNG = CUT_OFF.judged_until_ms + 1


def order(order_id: str = "a", *, customer: str = "ada", cents: int = 1250, at: int | None = OLD) -> tuple[object, ...]:
    return order_id, customer, cents, at


def credit(
    order_id: str | None = "a", *, customer: str = "ada", points: int = 12, cents: int | None = 1250, at: int = OLD
) -> tuple[object, ...]:
    return order_id, customer, points, cents, at


Rows = Sequence[tuple[object, ...]]


def findings(spark: SparkSession, orders: Rows, credits: Rows, transactions: Rows = ()) -> dict[str | None, str]:
    found = match_orders(
        spark.createDataFrame(list(orders), ORDERS.schema),
        spark.createDataFrame(list(transactions), TRANSACTIONS.schema),
        spark.createDataFrame(list(credits), CREDITS.schema),
        CUT_OFF,
    ).collect()
    return {row.order_id: row.finding for row in found}


CASES = [
    pytest.param([order()], [credit()], [], Finding.MATCHED, id="equal"),
    pytest.param([order(at=YOUNG)], [credit(at=YOUNG)], [], Finding.MATCHED, id="equal, and young"),
    pytest.param([order()], [], [], Finding.MISSING_CREDIT, id="order alone"),
    pytest.param([order(at=YOUNG)], [], [], Finding.IN_FLIGHT, id="young order alone"),
    pytest.param([order(at=None)], [], [], Finding.MISSING_CREDIT, id="order of unknown age alone"),
    pytest.param([], [credit()], [], Finding.CREDIT_WITHOUT_ORDER, id="credit alone"),
    pytest.param([], [credit(at=YOUNG)], [], Finding.IN_FLIGHT, id="young credit alone"),
    pytest.param([], [credit()], [("a", "ROLLED_BACK")], Finding.CREDIT_WITHOUT_ORDER, id="credit of a rollback"),
    pytest.param([order()], [credit()], [("a", "ROLLED_BACK")], Finding.CREDIT_WITHOUT_ORDER, id="credit, order row, rollback"),
    pytest.param([order()], [], [("a", "ROLLED_BACK")], Finding.ROLLED_BACK_ORDER, id="order row of a rollback"),
    pytest.param(
        [order()], [credit()], [("a", "ROLLED_BACK"), ("a", "COMMITTED")], Finding.MATCHED, id="second attempt committed"
    ),
    pytest.param([order()], [credit(), credit()], [], Finding.DOUBLE_CREDIT, id="two credits"),
    pytest.param([order(at=YOUNG)], [credit(at=YOUNG)] * 2, [], Finding.DOUBLE_CREDIT, id="two young credits"),
    pytest.param([order()], [credit(cents=1251)], [], Finding.AMOUNT_MISMATCH, id="another amount"),
    pytest.param([order()], [credit(cents=None)], [], Finding.AMOUNT_MISMATCH, id="no amount"),
    pytest.param([order()], [credit(points=13)], [], Finding.POINTS_MISMATCH, id="points rounded up"),
    pytest.param([order(cents=99)], [credit(cents=99, points=0)], [], Finding.MATCHED, id="less than a point"),
    pytest.param([order()], [credit(customer="bob")], [], Finding.WRONG_CUSTOMER, id="another customer"),
]


@pytest.mark.parametrize(("orders", "credits", "transactions", "expected"), CASES)
def test_an_order_and_its_credits_get_one_finding(
    spark: SparkSession, orders: Rows, credits: Rows, transactions: Rows, expected: Finding
) -> None:
    assert findings(spark, orders, credits, transactions) == {"a": expected}


def test_orders_are_judged_each_for_itself(spark: SparkSession) -> None:
    found = findings(spark, [order("a"), order("b")], [credit("b"), credit("c")], [("a", "COMMITTED"), (None, "ROLLED_BACK")])
    assert found == {"a": Finding.MISSING_CREDIT, "b": Finding.MATCHED, "c": Finding.CREDIT_WITHOUT_ORDER}


def test_large_amounts_are_divided_exactly(spark: SparkSession) -> None:
    cents = 2**62 + 99
    found = findings(spark, [order(cents=cents)], [credit(cents=cents, points=cents // 100)])
    assert found == {"a": Finding.MATCHED}


def test_nothing_compared_with_nothing_is_no_finding(spark: SparkSession) -> None:
    assert findings(spark, [], []) == {}
