"""Runs tests that use the fixture `judge` on Spark, and contains tests that need Spark."""

import pytest
from pyspark.sql import SparkSession

from pipelines import reconciliation
from pipelines.reconciliation import find
from pipelines.sources.reading import Reading
from tests.component.pipelines.broken_books import CUT_OFF
from tests.component.pipelines.conftest import ShopDatabases
from tests.component.pipelines.sources.databases.test_unreadable_values import (
    test_one_odd_value_of_each_kind_hides_no_other_finding,
)
from tests.component.pipelines.test_reconciliation import (
    test_a_gap_of_the_log_is_told_and_orders_in_it_are_not_judged,
    test_a_torn_end_of_the_log_hides_what_the_consume_queues_point_to,
    test_amounts_are_added_up_by_currency,
    test_an_empty_commit_log_has_no_message_for_any_order,
    test_balances_that_are_not_the_sum_of_the_ledger_are_found,
    test_books_broken_in_every_way_are_reported_as_they_were_broken,
    test_empty_books_have_totals_of_nothing,
    test_several_brokers_stores_are_one_history,
    test_totals_name_a_few_orders,
    test_what_is_credited_between_two_readings_is_in_the_inbox_or_in_the_ledger,
    test_what_is_not_consumed_yet_is_in_flight,
)
from tests.component.pipelines.test_strange_books import (
    test_strange_books_are_found_by_class_and_cause_and_odd_ones_are_not_accused,
)

__all__ = [
    "test_a_gap_of_the_log_is_told_and_orders_in_it_are_not_judged",
    "test_a_torn_end_of_the_log_hides_what_the_consume_queues_point_to",
    "test_amounts_are_added_up_by_currency",
    "test_an_empty_commit_log_has_no_message_for_any_order",
    "test_balances_that_are_not_the_sum_of_the_ledger_are_found",
    "test_books_broken_in_every_way_are_reported_as_they_were_broken",
    "test_empty_books_have_totals_of_nothing",
    "test_one_odd_value_of_each_kind_hides_no_other_finding",
    "test_several_brokers_stores_are_one_history",
    "test_strange_books_are_found_by_class_and_cause_and_odd_ones_are_not_accused",
    "test_totals_name_a_few_orders",
    "test_what_is_credited_between_two_readings_is_in_the_inbox_or_in_the_ledger",
    "test_what_is_not_consumed_yet_is_in_flight",
]


@pytest.mark.parametrize(("is_small", "max_broadcast"), [(True, 1), (False, 1), (False, 0)])
def test_histories_meet_markers_only_where_there_are_any(
    spark: SparkSession, shop: ShopDatabases, monkeypatch: pytest.MonkeyPatch, is_small: bool, max_broadcast: int
) -> None:
    monkeypatch.setattr(reconciliation, "MAX_BROADCAST", max_broadcast)
    books = shop.books()

    def plan() -> str:
        return str(find(Reading(spark, is_small), books, CUT_OFF, [])._jdf.queryExecution().optimizedPlan())

    shop.add_orders(["a"])
    assert "Join" not in plan()
    shop.orders.execute("INSERT INTO transactions VALUES ('m', NULL, 'ROLLED_BACK', 1, 'order')")
    shop.orders.commit()
    assert "Join LeftOuter" in plan()
