"""Creates rows as in a reconciliation's outcome."""

from typing import Any

from pipelines.judging.judge import FINDING_COLUMNS
from pipelines.judging.totals import totals_of
from pipelines.reconciliation import ReconciliationOutcome

AS_OF_MS = 1_800_000_000_000
MINUTE_MS = 60_000


def row(finding: str, count: int = 1, *, ago_ms: int = 0, **more: Any) -> dict[str, Any]:
    """Returns a finding for an order placed `ago_ms` before AS_OF_MS."""
    ordered_at_ms = AS_OF_MS - ago_ms
    empty = dict.fromkeys((*FINDING_COLUMNS, "latency_step"), None)
    return {
        **empty, "finding": finding, "count": count, "stage": "ordered", "currency": "EUR", "order_count": count,
        "credit_count": 0, "ordered_at_ms": ordered_at_ms, "period_ms": ordered_at_ms // MINUTE_MS * MINUTE_MS, **more,
    }  # fmt: skip


def matched(count: int, *, latency_step: int, ago_ms: int = 0) -> dict[str, Any]:
    """Returns one row that sums up `count` healthy orders."""
    sums = {"stage": None, "credit_count": count, "order_cents": 1250 * count, "credit_cents": 1250 * count}
    added_up = row("matched", count, ago_ms=ago_ms, latency_step=latency_step, **sums)
    return {**added_up, "ordered_at_ms": None}


def outcome(*rows: dict[str, Any]) -> ReconciliationOutcome:
    return ReconciliationOutcome(totals_of(rows, ()), list(rows))
