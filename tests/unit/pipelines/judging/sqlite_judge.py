"""Judges events with `pipelines.judging.without_spark`, and adds queries that only tests need."""

from collections.abc import Iterable

from pipelines.increments.windows import is_settled
from pipelines.judging import rules
from pipelines.judging.classes import CONSISTENT
from pipelines.judging.cut_off import CutOff
from pipelines.judging.without_spark import sqlite_judge
from pipelines.judging.without_spark.sqlite_judge import Event, group

__all__ = ["group", "judge", "judge_conditions"]


def judge(
    events: Iterable[Event], cut_off: CutOff, log_begins_ms: int | None, markers: Iterable[str] = ()
) -> list[dict[str, object]]:
    """Returns the judged histories, one for each order. `is_settled` is true if an increment would not judge the order again."""
    return sqlite_judge.judge(events, cut_off, log_begins_ms, markers, f"SELECT *, {is_settled()} AS is_settled FROM judged")


def judge_conditions(events: Iterable[Event], cut_off: CutOff, log_begins_ms: int | None) -> list[tuple[object, ...]]:
    """Returns, for each history, the value of each condition in `rules.CLASSES` that reports a fault: 1, 0 or None."""
    accusing = [condition for finding, condition in rules.CLASSES if finding not in CONSISTENT]
    named = ", ".join(f"{condition} AS condition_{number}" for number, condition in enumerate(accusing))
    return [
        tuple(row.values()) for row in sqlite_judge.judge(events, cut_off, log_begins_ms, query=f"SELECT {named} FROM judged")
    ]
