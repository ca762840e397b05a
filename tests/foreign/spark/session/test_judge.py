"""Tests how the events of several sources in one frame become histories."""

from pyspark.sql import DataFrame, SparkSession

from pipelines.judging.events import all_events, event_rows
from pipelines.judging.history import COUNTS, EVENT_COLUMNS
from pipelines.judging.judge import grouped
from pipelines.judging.table_events import CREDIT_EVENTS, ORDER_EVENTS
from pipelines.sources.databases.tables import CREDITS, ORDERS, Table

AT_MS = 1_000


def rows(spark: SparkSession, table: Table, *values: tuple[object, ...]) -> DataFrame:
    return spark.createDataFrame(list(values), ", ".join(f"{name} {kind}" for name, kind in table.columns.items()))


def orders_and_credits(spark: SparkSession) -> DataFrame:
    """Returns events of orders a and b, of credits b and c, and of a second credit b from another source of the same kind."""
    orders = rows(spark, ORDERS, *[(name, "ada", 1250, "EUR", "PLACED", AT_MS, None, None, None) for name in ("a", "b")])
    credits = [(name, "credit", "ada", 12, 1250, "M", f"T-{name}", AT_MS + 5) for name in ("b", "c")]
    more = ("b", "credit", "bob", 11, 1150, "M", "T-x", AT_MS + 3)
    return all_events(
        [
            event_rows(orders, ORDER_EVENTS),
            event_rows(rows(spark, CREDITS, *credits), CREDIT_EVENTS),
            event_rows(rows(spark, CREDITS, more), CREDIT_EVENTS),
        ]
    )


def test_an_event_is_as_wide_as_what_its_source_says(spark: SparkSession) -> None:
    assert orders_and_credits(spark).columns == ["order_id", "unnamed", "with_order_rows", "with_credit_rows"]


def test_events_of_all_sources_become_one_history_for_each_order(spark: SparkSession) -> None:
    histories = {row["order_id"]: row.asDict() for row in grouped(orders_and_credits(spark)).collect()}
    assert sorted(histories) == ["a", "b", "c"]
    told = (
        "order_rows",
        "credit_rows",
        "customer",
        "credited_customer",
        "last_credited_customer",
        "credit_cents",
        "ordered_at_ms",
    )
    assert {key: tuple(row[name] for name in told) for key, row in histories.items()} == {
        "a": (1, 0, "ada", None, None, None, AT_MS),
        "b": (1, 2, "ada", "ada", "bob", 2400, AT_MS),
        "c": (0, 1, None, "ada", "ada", 1250, None),
    }
    assert histories["b"]["credited_at_ms"] == AT_MS + 3
    nothing = {name: histories["b"][name] for name in EVENT_COLUMNS if name.startswith(("half", "message", "dead", "unconsumed"))}
    assert nothing == {name: 0 if name in COUNTS else None for name in nothing}


def test_histories_are_events_that_can_be_grouped_again(spark: SparkSession) -> None:
    once = grouped(orders_and_credits(spark))
    assert [(field.name, field.dataType.simpleString()) for field in once.schema] == list(EVENT_COLUMNS.items())
    again = grouped(
        once.unionByName(
            grouped(
                all_events([event_rows(rows(spark, ORDERS, ("c", "cy", 9, "EUR", "PLACED", 7, None, None, None)), ORDER_EVENTS)])
            )
        )
    )
    assert {row["order_id"]: (row["order_rows"], row["credit_rows"], row["customer"]) for row in again.collect()} == {
        "a": (1, 0, "ada"),
        "b": (1, 2, "ada"),
        "c": (1, 1, "cy"),
    }
