"""Turns events into findings. Aggregates the events of each order into a history, and classifies it by the rules."""

from collections import defaultdict
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pipelines.judging import rules
from pipelines.judging.cut_off import CutOff
from pipelines.judging.history import EVENT_COLUMNS, KEY, NAMES, aggregates

FINDING_COLUMNS: Final = (
    "finding",
    "cause",
    "stage",
    "order_id",
    "customer",
    "currency",
    "order_count",
    "order_cents",
    "credit_count",
    "credit_cents",
    "at_stake_cents",
    "transaction_id",
    "ordered_at_ms",
    "half_at_ms",
    "delivered_at_ms",
    "discarded_at_ms",
    "dead_at_ms",
    "received_at_ms",
    "last_error",
    "credited_at_ms",
    "points",
    "balance",
)
"""The columns of a finding about an order, or about a customer with a wrong balance."""


def histories_of(events: DataFrame, markers: DataFrame | None) -> DataFrame:
    """Returns a history for each order, and for each record without an order. `markers` is None if there are none."""
    histories = grouped(events)
    return without_markers(histories) if markers is None else with_markers(histories, markers)


def without_markers(grouped: DataFrame) -> DataFrame:
    """Adds the columns of `rules.MARKED` with the value 0, for sources without ROLLED_BACK markers."""
    return grouped.withColumns(dict.fromkeys(rules.MARKED, F.lit(0)))


def grouped(events: DataFrame) -> DataFrame:
    """Groups the events of each order, and of each record without an order, into one row. Columns: EVENT_COLUMNS.

    The row has the columns of an event, so the rows of several groupings can be grouped again with the same result.
    """
    made = aggregates(_said(events.schema))
    cast = [f"CAST({sql} AS {EVENT_COLUMNS[name]}) AS {name}" for name, sql in made.items()]
    return events.groupBy(*KEY).agg(*map(F.expr, cast))


def with_markers(grouped: DataFrame, markers: DataFrame) -> DataFrame:
    """Adds the columns of `rules.MARKED`, which count the ROLLED_BACK markers of the row's transactions."""
    for name, transaction in rules.MARKED.items():
        found = markers.withColumnRenamed("markers", "found")
        joined = grouped.join(found, F.expr(transaction) == F.col("marked_transaction_id"), "left")
        grouped = joined.withColumn(name, F.coalesce("found", F.lit(0))).drop("marked_transaction_id", "found")
    return grouped


def judged(
    histories: DataFrame, cut_off: CutOff, log_begins_ms: int | None, repairs: rules.KnownRepairs | None = None
) -> DataFrame:
    """Adds stage, finding, cause and the affected amount (`at_stake_cents`) to the histories.

    See `rules.facts` for `log_begins_ms` and `repairs`.
    """
    for columns in rules.steps(cut_off, log_begins_ms, repairs).values():
        histories = histories.selectExpr("*", *[f"{sql} AS {name}" for name, sql in columns.items()])
    return histories


def findings_of(histories: DataFrame) -> DataFrame:
    """Selects FINDING_COLUMNS from judged histories."""
    sql_of = {
        **{name: f"COALESCE({', '.join(columns)})" for name, columns in NAMES.items()},
        "order_count": "CAST(order_rows AS bigint)",
        "credit_count": "CAST(credit_rows AS bigint)",
        "credit_cents": "try_cast(credit_cents AS bigint)",
        "at_stake_cents": "try_cast(at_stake_cents AS bigint)",
        "balance": "CAST(NULL AS bigint)",
    }
    return histories.selectExpr(*[f"{sql_of.get(name, name)} AS {name}" for name in FINDING_COLUMNS])


def _said(events: StructType) -> dict[str, str]:
    """Returns the SQL of each column of a history. The SQL reads a field in a struct of `all_events`, or a column.

    A column of several kinds of sources is in several structs. Only one of them is set in a row.
    """
    places: dict[str, list[str]] = defaultdict(list)
    for field in events:
        if isinstance(field.dataType, StructType):
            for name in field.dataType.fieldNames():
                places[name].append(f"{field.name}.{name}")
        else:
            places[field.name].append(field.name)
    return {name: found[0] if len(found) == 1 else f"COALESCE({', '.join(found)})" for name, found in places.items()}
