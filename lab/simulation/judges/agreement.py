"""Compares the results of the modules `audit` and `liveness` for each order. If they differ, one of them is wrong."""

from collections.abc import Mapping

from lab.simulation.judges.audit import AuditReport
from lab.simulation.judges.liveness import LivenessReport
from lab.simulation.judges.violation import OrderVerdict, Promise, Violation


def disagreements(audit: AuditReport, liveness: LivenessReport) -> list[Violation]:
    """Returns a violation for each order on which `audit` and `liveness` disagree."""
    return [
        Violation(Promise.JUDGES_AGREE, _told(order_id, audit, by_liveness), (order_id,))
        for order_id, by_liveness in _verdicts(audit, liveness).items()
        if audit.verdicts[order_id] is not by_liveness
    ]


def _verdicts(audit: AuditReport, liveness: LivenessReport) -> Mapping[str, OrderVerdict]:
    """Returns the verdicts of `liveness` on the orders that `audit` checked.

    An order without a verdict counts as settled.
    """
    return {order_id: liveness.verdicts.get(order_id, OrderVerdict.SETTLED) for order_id in audit.verdicts}


def _told(order_id: str, audit: AuditReport, by_liveness: OrderVerdict) -> str:
    return (
        f"The judges disagree: the auditor finds {audit.findings[order_id]}, which is {audit.verdicts[order_id]}; "
        f"liveness says {by_liveness}"
    )
