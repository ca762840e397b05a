"""Events as Spark's rows: a source fills its own columns, and the union of all sources is as narrow as they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from pipelines.judging.history import KEY


def event_rows(rows: DataFrame, said: Mapping[str, str], *, unnamed: str = "NULL") -> DataFrame:
    """Returns one event for each row, which has an `order_id`: the columns of KEY, and a struct of what else the source says.

    `said` has the SQL of other columns of EVENT_COLUMNS, of which the first names the struct, and `unnamed` that of this key.
    """
    fields = ", ".join(f"{sql} AS {name}" for name, sql in said.items())
    unnamed = f"CAST({unnamed} AS {KEY['unnamed']}) AS unnamed"
    return rows.selectExpr("order_id", unnamed, f"struct({fields}) AS with_{next(iter(said))}")


def all_events(events: Sequence[DataFrame]) -> DataFrame:
    """Returns the union of several sources' events: the columns of KEY, and a struct for each kind of source.

    The struct is NULL in the rows of all other sources. So a row on its way to its order is as wide as its source's data, and not
    as wide as a history.
    """
    return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), events)
