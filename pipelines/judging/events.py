"""Events as Spark's rows: a source fills its own columns, and the union of all sources is as narrow as they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from pipelines.judging.history import KEY


def event_rows(rows: DataFrame, said: Mapping[str, str]) -> DataFrame:
    """Returns one event for each row: the columns of KEY, and a struct of what else the source says.

    `said` has the SQL of columns of EVENT_COLUMNS. The first of them that is no key names the struct.
    """
    keys = [f"{said.get(name, f'CAST(NULL AS {kind})')} AS {name}" for name, kind in KEY.items()]
    told = {name: sql for name, sql in said.items() if name not in KEY}
    fields = ", ".join(f"{sql} AS {name}" for name, sql in told.items())
    return rows.selectExpr(*keys, f"struct({fields}) AS with_{next(iter(told))}")


def all_events(events: Sequence[DataFrame]) -> DataFrame:
    """Returns the union of several sources' events: the columns of KEY, and a struct for each kind of source.

    The struct is NULL in the rows of all other sources. So a row on its way to its order is as wide as its source's data, and not
    as wide as a history.
    """
    return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), events)
