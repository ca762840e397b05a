"""Finds inconsistencies in rows and records that are in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.judging.cut_off import CutOff
from pipelines.judging.history import NAMES
from pipelines.judging.log_gaps import with_unjudged
from pipelines.judging.route import Progress, Route
from pipelines.judging.without_spark.record_events import record_events
from pipelines.judging.without_spark.sqlite_judge import Event, judge
from pipelines.judging.without_spark.table_events import TableRows
from rocketmq_commitlog.commit_log import Damage, LogRecord


@dataclass(frozen=True, slots=True)
class RecordsOfBroker:
    """The commit log of one broker, and the offsets of the consumer group that writes the credits."""

    records: Sequence[LogRecord | Damage] = ()
    progress: Progress = field(default_factory=dict)


def audited(
    tables: TableRows, logs: Sequence[RecordsOfBroker], cut_off: CutOff, route: Route | None = None
) -> list[dict[str, Any]]:
    """Returns a row for each order, each record without an order, and each customer with a wrong balance.

    Each row has finding, cause, order_id, transaction_id and customer. Rows of orders also have all columns of `history`. The
    logs must be complete since the first order.
    """
    route = route or Route()
    events: list[Event] = [*tables.events(route)]
    for log in logs:
        events += record_events(log.records, route, log.progress)
    rows = judge(events, cut_off, 0 if logs else None, tables.markers())
    return with_unjudged([with_names(row) for row in rows], cut_off) + tables.balance_findings()


def with_names(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the row with transaction_id, customer and currency set as in `judge.FINDING_COLUMNS`."""
    return row | {
        name: next((row[column] for column in columns if row[column] is not None), None) for name, columns in NAMES.items()
    }
