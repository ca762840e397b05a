"""Judges events with the SQL of the rules in SQLite."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import lru_cache
from typing import Any, Final

from pipelines.judging import rules
from pipelines.judging.cut_off import CutOff
from pipelines.judging.history import EVENT_COLUMNS, KEY, aggregates
from pipelines.judging.without_spark.in_sqlite import fill

Event = Mapping[str, object]
"""An event as a mapping of columns from `history.EVENT_COLUMNS`. Missing columns are NULL."""


def judge(
    events: Iterable[Event],
    cut_off: CutOff,
    log_begins_ms: int | None,
    markers: Iterable[str] = (),
    query: str = "SELECT * FROM judged",
    repairs: rules.KnownRepairs | None = None,
) -> list[dict[str, Any]]:
    """Returns the judged histories, one for each order.

    See `rules.facts` for `log_begins_ms` and `repairs`. `markers` are the ids of transactions with a ROLLED_BACK marker. `query`
    selects from the table `judged`.
    """
    return _rows(f"{_judged(cut_off, log_begins_ms, repairs)} {query}", events, markers)


def group(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Groups the events of each order into one event, and returns these events."""
    return _rows(_GROUPED, events, ())


def _rows(query: str, events: Iterable[Event], markers: Iterable[str]) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        fill(connection, "markers", ["marked_transaction_id"], [{"marked_transaction_id": marker} for marker in markers])
        connection.execute("CREATE INDEX marked ON markers (marked_transaction_id)")
        fill(connection, "events", tuple(EVENT_COLUMNS), events)
        return [dict(row) for row in connection.execute(query)]


@lru_cache(maxsize=16)
def _judged(cut_off: CutOff, log_begins_ms: int | None, repairs: rules.KnownRepairs | None) -> str:
    """Returns the WITH clause that ends with the table `judged`.

    Each step is materialized. Otherwise SQLite would evaluate the rules again wherever a later step uses their result.
    """
    marked = {name: f"(SELECT COUNT(*) FROM markers WHERE marked_transaction_id = {sql})" for name, sql in rules.MARKED.items()}
    tables = [f"histories AS MATERIALIZED (SELECT *, {_named(marked)} FROM ({_GROUPED}))"]
    before = "histories"
    for name, columns in rules.steps(cut_off, log_begins_ms, repairs).items():
        tables.append(f"{name} AS MATERIALIZED (SELECT *, {_named(columns)} FROM {before})")
        before = name
    return f"WITH {', '.join(tables)}"


def _named(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


_GROUPED: Final = f"SELECT {', '.join(KEY)}, {_named(aggregates())} FROM events GROUP BY {', '.join(KEY)}"
