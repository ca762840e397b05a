"""Judges events without Spark: the same SQL, run by SQLite."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Final

from pipelines.increments.windows import is_settled
from pipelines.judging import rules
from pipelines.judging.classes import CONSISTENT
from pipelines.judging.cut_off import CutOff
from pipelines.judging.history import EVENT_COLUMNS, KEY, aggregates

Event = Mapping[str, object]


def judge(
    events: Iterable[Event], cut_off: CutOff, log_begins_ms: int | None, markers: Iterable[str] = ()
) -> list[dict[str, object]]:
    """The judged histories, one for each order; `is_settled` says whether an increment would not judge it again."""
    return _rows(_query(cut_off, log_begins_ms), events, markers)


def group(events: Iterable[Event]) -> list[dict[str, object]]:
    """The events of each order in one, as they are kept from run to run."""
    return _rows(_GROUPED, events)


def judge_conditions(events: Iterable[Event], cut_off: CutOff, log_begins_ms: int | None) -> list[tuple[object, ...]]:
    """What each condition of `rules.CLASSES` that accuses says of each history: 1, 0 or None."""
    accusing = [condition for finding, condition in rules.CLASSES if finding not in CONSISTENT]
    named = ", ".join(f"{condition} AS condition_{number}" for number, condition in enumerate(accusing))
    query = f"SELECT {named} FROM ({_query(cut_off, log_begins_ms)})"
    return [tuple(row.values()) for row in _rows(query, events)]


def _rows(query: str, events: Iterable[Event], markers: Iterable[str] = ()) -> list[dict[str, object]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute(f"CREATE TABLE events ({', '.join(EVENT_COLUMNS)})")
        connection.execute("CREATE TABLE markers (marked_transaction_id, markers)")
        connection.executemany("INSERT INTO markers VALUES (?, 1)", [(marker,) for marker in markers])
        rows = [tuple(event.get(name) for name in EVENT_COLUMNS) for event in events]
        connection.executemany(f"INSERT INTO events VALUES ({', '.join('?' * len(EVENT_COLUMNS))})", rows)
        return [dict(row) for row in connection.execute(query)]


def _query(cut_off: CutOff, log_begins_ms: int | None) -> str:
    """Each step is materialized: SQLite would write the rules out anew wherever a later step names their outcome."""
    transaction = "COALESCE(half_transaction_id, message_transaction_id, credit_transaction_id)"
    steps = {
        "histories": (
            f"SELECT grouped.*, COALESCE(markers, 0) AS markers FROM ({_GROUPED}) AS grouped "
            f"LEFT JOIN markers ON {transaction} = marked_transaction_id"
        ),
        "with_facts": f"SELECT *, {_named(rules.facts(cut_off, log_begins_ms))} FROM histories",
        "classified": f"SELECT *, {rules.STAGE} AS stage, {rules.finding_of()} AS finding FROM with_facts",
        "judged": f"SELECT *, {rules.cause_of(log_begins_ms)} AS cause, {rules.AT_STAKE} AS at_stake_cents FROM classified",
    }
    tables = ", ".join(f"{name} AS MATERIALIZED ({query})" for name, query in steps.items())
    return f"WITH {tables} SELECT *, {is_settled()} AS is_settled FROM judged"


def _named(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


_GROUPED: Final = f"SELECT {', '.join(KEY)}, {_named(aggregates())} FROM events GROUP BY {', '.join(KEY)}"
