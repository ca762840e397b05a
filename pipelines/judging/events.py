"""Events as Spark's rows: a source fills its own columns, and the union of all sources is as narrow as they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from pipelines.judging.history import KEY
from pipelines.spark.sql_text import if_true


def event_rows(
    rows: DataFrame, said: Mapping[str, str], *, unnamed: str = "NULL", rare: tuple[str, Mapping[str, str]] | None = None
) -> DataFrame:
    """Returns one event for each row, which has an `order_id`: the columns of KEY, and a struct of what else the source says.

    `said` has the SQL of other columns of EVENT_COLUMNS, of which the first names the struct, and `unnamed` that of this key.
    `rare` is a condition, and the columns of a second struct, which is NULL in all rows that do not meet it.
    """
    unnamed = f"CAST({unnamed} AS {KEY['unnamed']}) AS unnamed"
    structs = [_struct(said)] if rare is None else [_struct(said), _struct(rare[1], rare[0])]
    return rows.selectExpr("order_id", unnamed, *structs)


def _struct(said: Mapping[str, str], condition: str | None = None) -> str:
    struct = f"struct({', '.join(f'{sql} AS {name}' for name, sql in said.items())})"
    return f"{struct if condition is None else if_true(condition, struct)} AS with_{next(iter(said))}"


def all_events(events: Sequence[DataFrame]) -> DataFrame:
    """Returns the union of several sources' events: the columns of KEY, and a struct for each kind of source.

    The struct is NULL in the rows of all other sources. So a row on its way to its order is as wide as its source's data, and not
    as wide as a history.
    """
    return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), events)
