"""Compares the results of the modules `audit` and `liveness` for each order. If they differ, one of them is wrong."""

from lab.simulation.judges.audit import AuditReport
from lab.simulation.judges.liveness import LivenessReport
from lab.simulation.judges.violation import OrderVerdict, Promise, Violation


def disagreements(audit: AuditReport, liveness: LivenessReport) -> list[Violation]:
    """Returns a violation for each order on which `audit` and `liveness` disagree.

    An order without a verdict of `liveness` counts as settled.
    """
    found = []
    for order_id, by_audit in audit.verdicts.items():
        by_liveness = liveness.verdicts.get(order_id, OrderVerdict.SETTLED)
        if by_audit is not by_liveness:
            text = f"the auditor finds {audit.findings[order_id]}, which is {by_audit}; liveness says {by_liveness}"
            found.append(Violation(Promise.JUDGES_AGREE, f"The judges disagree: {text}", (order_id,)))
    return found
