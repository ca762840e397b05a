"""Tests at which turns the watch command opens and closes a break. The test sets the time of each turn."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.breaks.break_table import BreakTable
from pipelines.commands.arguments import PatienceOptions
from pipelines.commands.watch_command import turn_of
from pipelines.increments.state import IncrementState
from pipelines.sources.reading import Reading
from tests.component.pipelines.conftest import ShopDatabases

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GRACE_S = 120
PLACED_MS = 1_000_000_000
GRACE_ENDS_MS = PLACED_MS + GRACE_S * 1000


def test_the_first_turn_after_the_grace_period_opens_a_break_and_the_first_after_the_credit_closes_it(
    spark: SparkSession, shop: ShopDatabases, tmp_path: Path
) -> None:
    times_ms = iter([PLACED_MS, GRACE_ENDS_MS - 1, GRACE_ENDS_MS, GRACE_ENDS_MS + 1])
    breaks = BreakTable(tmp_path / "breaks.db")
    turn = turn_of(
        Reading(spark, True), shop.books(), PatienceOptions(GRACE_S), str(tmp_path / "out"), IncrementState(tmp_path / "state"),
        breaks, lambda: next(times_ms),
    )  # fmt: skip
    shop.add_orders(["fine"])
    shop.add_credits(["fine"])
    assert "consistent: 1 orders, 1 credits, 0 lost, 0 doubled; breaks: 0 opened, 0 closed, 0 open;" in turn()
    shop.add_orders(["late"], at_ms=PLACED_MS)
    assert "consistent: 2 orders, 1 credits, 0 lost, 0 doubled; breaks: 0 opened, 0 closed, 0 open;" in turn()
    assert "inconsistent: 2 orders, 1 credits, 1 lost, 0 doubled; breaks: 1 opened, 0 closed, 1 open;" in turn()
    (found,) = breaks.list()
    assert (found.subject, found.finding, found.first_seen_ms) == ("order late", "missing_credit", GRACE_ENDS_MS)
    shop.add_credits(["late"], at_ms=GRACE_ENDS_MS)
    assert "consistent: 2 orders, 2 credits, 0 lost, 0 doubled; breaks: 0 opened, 1 closed, 0 open;" in turn()
    assert breaks.list() == []
