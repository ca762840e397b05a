"""Judges events without Spark: the same SQL, run by SQLite."""

import sqlite3
from collections.abc import Iterable, Mapping

from pipelines.judging import rules
from pipelines.judging.cut_off import CutOff
from pipelines.judging.history import EVENT_COLUMNS, KEY, aggregates

Event = Mapping[str, object]


def judge(
    events: Iterable[Event], cut_off: CutOff, log_begins_ms: int | None, markers: Iterable[str] = ()
) -> list[dict[str, object]]:
    """The judged histories, one for each order."""
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    connection.execute(f"CREATE TABLE events ({', '.join(EVENT_COLUMNS)})")
    connection.execute("CREATE TABLE markers (marked_transaction_id, markers)")
    connection.executemany("INSERT INTO markers VALUES (?, 1)", [(marker,) for marker in markers])
    rows = [tuple(event.get(name) for name in EVENT_COLUMNS) for event in events]
    connection.executemany(f"INSERT INTO events VALUES ({', '.join('?' * len(EVENT_COLUMNS))})", rows)
    try:
        return [dict(row) for row in connection.execute(_query(cut_off, log_begins_ms))]
    finally:
        connection.close()


def _query(cut_off: CutOff, log_begins_ms: int | None) -> str:
    grouped = f"SELECT {', '.join(KEY)}, {_named(aggregates())} FROM events GROUP BY {', '.join(KEY)}"
    transaction = "COALESCE(half_transaction_id, message_transaction_id, credit_transaction_id)"
    histories = (
        f"SELECT histories.*, COALESCE(markers, 0) AS markers FROM ({grouped}) AS histories "
        f"LEFT JOIN markers ON {transaction} = marked_transaction_id"
    )
    with_facts = f"SELECT *, {_named(rules.facts(cut_off, log_begins_ms))} FROM ({histories})"
    classified = f"SELECT *, {rules.STAGE} AS stage, {rules.finding_of()} AS finding FROM ({with_facts})"
    return f"SELECT *, {rules.cause_of(log_begins_ms)} AS cause, {rules.AT_STAKE} AS at_stake_cents FROM ({classified})"


def _named(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
