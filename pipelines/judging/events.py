"""Builds events as Spark rows. Each source has its own struct of columns, which keeps the union of all sources narrow."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Final

import pyarrow
from pyspark.sql import DataFrame

from pipelines.judging.history import EVENT_COLUMNS, KEY
from pipelines.judging.inbox_events import INBOX_COLUMNS, inbox_events
from pipelines.judging.route import Route
from pipelines.judging.table_events import MARKER, EventSql
from pipelines.spark.sql_text import if_true

_ARROW: Final = {"string": pyarrow.string(), "bigint": pyarrow.int64(), "int": pyarrow.int32()}
_INBOX: Final = pyarrow.schema([(name, _ARROW[EVENT_COLUMNS[name]]) for name in INBOX_COLUMNS])


def event_rows(rows: DataFrame, sql: EventSql) -> DataFrame:
    """Returns the events of the rows, with the columns of KEY, a struct of the other columns, and a struct of the rare ones."""
    unnamed = f"CAST({sql.unnamed} AS {KEY['unnamed']}) AS unnamed"
    structs = [_struct(sql.columns)] + ([] if sql.rare is None else [_struct(sql.rare, sql.rare_where)])
    return rows.alias("source").where(sql.where).selectExpr("order_id", unnamed, *structs)


def _struct(columns: Mapping[str, str], condition: str = "TRUE") -> str:
    struct = f"struct({', '.join(f'{sql} AS {name}' for name, sql in columns.items())})"
    return f"{struct if condition == 'TRUE' else if_true(condition, struct)} AS with_{next(iter(columns))}"


def inbox_event_table(batches: Iterable[pyarrow.RecordBatch], route: Route) -> pyarrow.Table:
    """Returns the events of batches of rows, with INBOX_COLUMNS. The bodies are read batch by batch, and not kept."""
    made = (pyarrow.RecordBatch.from_pylist([*inbox_events(batch.to_pylist(), route)], _INBOX) for batch in batches)
    return pyarrow.Table.from_batches(made, _INBOX)


def inbox_rows(events: DataFrame) -> DataFrame:
    """Returns the events of `inbox_event_table` in the form of the other events."""
    return event_rows(events, EventSql({name: name for name in events.columns if name not in KEY}, unnamed="unnamed"))


def markers(transactions: DataFrame) -> DataFrame:
    """Returns the markers: ROLLED_BACK rows without an order. Columns: marked_transaction_id, markers (1)."""
    return transactions.where(MARKER).selectExpr("transaction_id AS marked_transaction_id", "1 AS markers")


def all_events(events: Sequence[DataFrame]) -> DataFrame:
    """Returns the union of the events of several sources, with the columns of KEY and a struct for each kind of source.

    A struct is NULL in the rows of other sources, so a shuffled row contains only the data of its own source.
    """
    return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), events)
