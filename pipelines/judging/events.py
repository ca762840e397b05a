"""Builds events as Spark rows. Each source has its own struct of columns, which keeps the union of all sources narrow."""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame

from pipelines.judging.history import KEY
from pipelines.judging.table_events import MARKER, EventSql
from pipelines.spark.sql_text import if_true


def event_rows(rows: DataFrame, sql: EventSql) -> DataFrame:
    """Returns the events of the rows, with the columns of KEY, a struct of the other columns, and a struct of the rare ones."""
    unnamed = f"CAST({sql.unnamed} AS {KEY['unnamed']}) AS unnamed"
    structs = [_struct(sql.columns)] + ([] if sql.rare is None else [_struct(sql.rare, sql.rare_where)])
    return rows.alias("source").where(sql.where).selectExpr("order_id", unnamed, *structs)


def _struct(columns: Mapping[str, str], condition: str = "TRUE") -> str:
    struct = f"struct({', '.join(f'{sql} AS {name}' for name, sql in columns.items())})"
    return f"{struct if condition == 'TRUE' else if_true(condition, struct)} AS with_{next(iter(columns))}"


def inbox_rows(events: DataFrame) -> DataFrame:
    """Returns the events of the inbox, which have `inbox_events.INBOX_COLUMNS`, in the form of the other events."""
    return event_rows(events, EventSql({name: name for name in events.columns if name not in KEY}, unnamed="unnamed"))


def markers(transactions: DataFrame) -> DataFrame:
    """Returns the markers: ROLLED_BACK rows without an order. Columns: marked_transaction_id, markers (1)."""
    return transactions.where(MARKER).selectExpr("transaction_id AS marked_transaction_id", "1 AS markers")


def all_events(events: Sequence[DataFrame]) -> DataFrame:
    """Returns the union of the events of several sources, with the columns of KEY and a struct for each kind of source.

    A struct is NULL in the rows of other sources, so a shuffled row contains only the data of its own source.
    """
    return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), events)
