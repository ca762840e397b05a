"""Compares the databases and the commit log of a session by the rules of the reconciliation, in SQLite."""

from collections.abc import Mapping
from typing import Any, Final

from demo.play.services.side import Tables
from demo.play.wording import translated
from pipelines.judging.classes import CAUSES, CONSISTENT, MEANINGS, Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.route import Route
from pipelines.judging.without_spark.auditing import RecordsOfBroker, audited
from pipelines.judging.without_spark.table_events import TableRows
from pipelines.sources.logs.consumer_offsets import consumer_offsets_in
from rocketmq_commitlog.segment_bytes import scan_bytes

GRACE_S: Final = 10
"""The grace period in seconds. It is short, because the session's commit log shows what is still on its way."""


class SessionVerdict:
    """The result of the comparison: the orders and customers with problems."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        """`rows` are the rows that `audited` returned."""
        self._wrong = [row for row in rows if Finding(row["finding"]) not in CONSISTENT]
        self._reversed = [row for row in rows if Finding(row["finding"]) is Finding.REVERSED]
        self._pending = [row for row in rows if Finding(row["finding"]) is Finding.IN_FLIGHT]

    @property
    def is_consistent(self) -> bool:
        """True if no order has a problem. An order in flight is not a problem."""
        return not self._wrong

    @property
    def findings(self) -> list[str]:
        """The findings of the orders and customers with problems, such as `missing_credit`."""
        return [str(row["finding"]) for row in self._wrong]

    def to_json(self, language: str) -> dict[str, Any]:
        """Returns the verdict as values for JSON, with its texts in the given language."""
        return {
            "is_consistent": self.is_consistent,
            "orders": [
                {
                    "order_id": row["order_id"] or row["customer"],
                    "finding": row["finding"],
                    "problem": _problem(row, language),
                }
                for row in self._wrong
            ],
            "text": translated(self._text(), language),
        }

    def _text(self) -> str:
        if self._wrong:
            count = len(self._wrong)
            return f"Not consistent: {count} {'problem' if count == 1 else 'problems'}."
        if self._pending:
            count = len(self._pending)
            return f"Consistent so far: {count} {'order is' if count == 1 else 'orders are'} on the way."
        if self._reversed:
            return "Consistent: each order has one credit, or was cancelled."
        return "Consistent: each order has one credit."


def judged(orders: Tables, credits: Tables, log: bytes, offsets: bytes | None, now_ms: int) -> SessionVerdict:
    """Compares the tables of both services with the broker's commit log, and returns the verdict.

    `offsets` is the content of the broker's consumerOffset.json, or None. `now_ms` is the time of the comparison.
    """
    route = Route()
    tables = TableRows(
        orders=tuple(orders["orders"]),
        order_items=tuple(orders["order_items"]),
        transactions=tuple(orders["transactions"]),
        credits=tuple(credits["credits"]),
        balances=tuple(credits["balances"]),
        inbox=tuple(credits["rocketmq_inbox"]),
    )
    progress = {topic: consumer_offsets_in(offsets or b"{}", route.consumer_group, topic) for topic in route.consumed_topics}
    records = RecordsOfBroker(tuple(scan_bytes({0: log})), progress)
    return SessionVerdict(audited(tables, [records], CutOff(now_ms, grace_seconds=GRACE_S), route))


def _problem(row: Mapping[str, Any], language: str) -> str:
    problem, cause = translated(MEANINGS[Finding(row["finding"])], language), row["cause"]
    return problem if cause is None else f"{problem} ({translated(CAUSES[Cause(cause)], language)})"
