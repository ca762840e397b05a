"""Formats the outcome of a reconciliation as JSON."""

import msgspec

from pipelines.judging.classes import MEANINGS, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.log_gaps import gaps_of
from pipelines.judging.totals import FindingTotal, Tolerance
from pipelines.reconciliation import ReconciliationOutcome
from pipelines.reporting.inbox_reasons import inbox_reasons
from rocketmq_broker.message.text.printable import visible_json


def as_json(
    outcome: ReconciliationOutcome,
    cut_off: CutOff,
    tolerance: Tolerance,
    *,
    start_s: float | None,
    compare_s: float,
    is_audited: bool = False,
) -> str:
    """Returns a JSON object with the verdict, the time for which it holds, and each class with findings.

    The object also contains the times that Spark's start and the comparison took, the reasons why messages are in the
    inbox, and the gaps of the log.

    `is_audited` is True if audit files of repairs were read.
    """
    totals = outcome.totals
    encoded = msgspec.json.encode(
        {
            "is_consistent": tolerance.is_consistent(totals),
            "as_of_ms": cut_off.as_of_ms,
            "grace_seconds": cut_off.grace_seconds,
            "overdue_seconds": cut_off.overdue_seconds,
            "orders": sum(total.order_count for total in totals),
            "credits": sum(total.credit_count for total in totals),
            "spark_started_in_s": None if start_s is None else round(start_s, 3),
            "compared_in_s": round(compare_s, 3),
            "repairs_believed": 0 if is_audited else sum(total.repaired_count for total in totals),
            "findings": [_finding(total, tolerance) for total in totals if total.count],
            "unreadable_values": [row["transaction_id"] for row in outcome.rows if row["finding"] == Finding.UNREADABLE_VALUE],
            "inbox": inbox_reasons(outcome.rows),
            "log_gaps": [
                {
                    "from": gap.begins,
                    "to": gap.ends,
                    "is_missing": gap.is_missing,
                    "whole_again_ms": gap.whole_again_ms,
                    "lost": gap.lost,
                }
                for gap in gaps_of(outcome.rows)
            ],
        }
    )
    return visible_json(encoded.decode())


def _finding(total: FindingTotal, tolerance: Tolerance) -> dict[str, object]:
    return {
        "finding": total.finding.value,
        "meaning": MEANINGS[total.finding],
        "fails": tolerance.fails(total),
        "count": total.count,
        "causes": {cause.value: count for cause, count in total.causes},
        "money": [
            {
                "currency": money.currency or None,
                "count": money.count,
                "order_cents": money.order_cents,
                "credit_cents": money.credit_cents,
                "at_stake_cents": money.at_stake_cents,
            }
            for money in total.money
        ],
        "oldest_ms": total.oldest_ms,
        "order_ids": list(total.sample_order_ids),
    }
