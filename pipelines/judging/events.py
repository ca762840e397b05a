"""Builds events as Spark rows. Each source has its own struct of columns, which keeps the union of all sources narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from pipelines.judging.history import KEY
from pipelines.spark.sql_text import if_true


def event_rows(
    rows: DataFrame, said: Mapping[str, str], *, unnamed: str = "NULL", rare: tuple[str, Mapping[str, str]] | None = None
) -> DataFrame:
    """Returns one event per row, with the columns of KEY and a struct of other columns. Rows must have an `order_id`.

    `said` maps columns of EVENT_COLUMNS to their SQL; the first one names the struct. `unnamed` is the SQL of the key column
    `unnamed`. `rare` is a condition and the columns of a second struct, which is NULL in rows that do not meet the condition.
    """
    unnamed = f"CAST({unnamed} AS {KEY['unnamed']}) AS unnamed"
    structs = [_struct(said)] if rare is None else [_struct(said), _struct(rare[1], rare[0])]
    return rows.selectExpr("order_id", unnamed, *structs)


def _struct(said: Mapping[str, str], condition: str | None = None) -> str:
    struct = f"struct({', '.join(f'{sql} AS {name}' for name, sql in said.items())})"
    return f"{struct if condition is None else if_true(condition, struct)} AS with_{next(iter(said))}"


def all_events(events: Sequence[DataFrame]) -> DataFrame:
    """Returns the union of the events of several sources, with the columns of KEY and a struct for each kind of source.

    A struct is NULL in the rows of other sources, so a shuffled row contains only the data of its own source.
    """
    return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), events)
