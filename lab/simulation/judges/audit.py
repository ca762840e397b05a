"""Applies the rules of the reconciliation to the stored data at the end of a simulation."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lab.simulation.judges.books import ROUTE, WorldBooks
from lab.simulation.judges.violation import OrderVerdict, Promise, Violation
from pipelines.judging.classes import CAUSES, MEANINGS, Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.without_spark.auditing import audited

_HEALTHY: Final = frozenset({Finding.MATCHED, Finding.ROLLED_BACK, Finding.REVERSED, Finding.ENDED})
_LACKS_AN_ENTRY: Final = frozenset({Finding.MISSING_CREDIT, Finding.MISSING_REVERSAL, Finding.REVERSAL_WITHOUT_CREDIT})
"""The findings about a missing entry. An operator repairs them if the order is on a list for operators.

For example, the database may have refused a credit but not its reversal.
"""
_UNDECIDED: Final = frozenset({Finding.IN_FLIGHT, Finding.OVERDUE})
"""The findings about undecided orders. An unpaid order whose half message was discarded also waits for an operator."""
_OF_ENTRIES: Final = _LACKS_AN_ENTRY | {
    Finding.CREDIT_WITHOUT_ORDER,
    Finding.DOUBLE_CREDIT,
    Finding.REVERSED_ORDER,
    Finding.AMOUNT_MISMATCH,
    Finding.POINTS_MISMATCH,
    Finding.WRONG_CUSTOMER,
}
"""The findings about the entries of an order. `liveness` must agree with them."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The findings and verdicts of an audit."""

    violations: tuple[Violation, ...]
    verdicts: Mapping[str, OrderVerdict]
    """Maps order ids to verdicts. Orders are omitted if their finding is not about entries."""
    findings: Mapping[str, Finding]
    """Maps order ids to findings."""


def audit(books: WorldBooks, cut_off: CutOff, named: Collection[str] = (), excused: Collection[Finding] = ()) -> AuditReport:
    """Checks the stored data at the end of a simulation. Orders that are still in progress are violations.

    `named` are the orders on the lists for operators. `excused` are the findings that the simulation's faults explain. For
    example, a clock that jumps causes wrong times.
    """
    rows = audited(books.tables, books.logs, cut_off, ROUTE)
    of_orders = {row["order_id"]: row for row in rows if row["order_id"] is not None}
    findings = {order_id: Finding(row["finding"]) for order_id, row in of_orders.items()}
    verdicts = {order_id: verdict for order_id, it in findings.items() if (verdict := _verdict(order_id, it, named)) is not None}
    waiting = {order_id for order_id, it in findings.items() if order_id in named and it in _LACKS_AN_ENTRY | _UNDECIDED}
    allowed = _HEALTHY | set(excused)
    wrong = [row for row in rows if Finding(row["finding"]) not in allowed and row["order_id"] not in waiting]
    return AuditReport(tuple(map(_violation, wrong)), verdicts, findings)


def _verdict(order_id: str, finding: Finding, named: Collection[str]) -> OrderVerdict | None:
    if finding in _HEALTHY:
        return OrderVerdict.SETTLED
    if finding in _LACKS_AN_ENTRY and order_id in named:
        return OrderVerdict.WAITS_FOR_A_PERSON
    return OrderVerdict.BROKEN if finding in _OF_ENTRIES else None


def _violation(row: Mapping[str, Any]) -> Violation:
    finding, cause = Finding(row["finding"]), row["cause"]
    because = "" if cause is None else f"; {CAUSES[Cause(cause)]}"
    keys = tuple(key for key in (row["order_id"], row.get("transaction_id"), row["customer"]) if key)
    return Violation(Promise.BOOKS_AGREE, f"{finding}: {MEANINGS[finding]}{because}", keys)
