"""Chooses the repair for each finding, by its class and cause, and the reconciliation's row of the order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pipelines.judging.classes import CONSISTENT, Cause, Finding
from pipelines.judging.log_events import Route
from pipelines.repair.evidence import evidence_of
from pipelines.repair.plan import Action, ForAPerson, OrderSaid, RepairPlan, RepairStep

REMEDIES: Final[Mapping[tuple[Finding, Cause], Action]] = {
    (Finding.MISSING_CREDIT, Cause.DISCARDED): Action.RESUME,
    (Finding.MISSING_CREDIT, Cause.DEAD_LETTER): Action.RETRY,
    (Finding.MISSING_CREDIT, Cause.CONSUMED): Action.PUBLISH,
    (Finding.MISSING_CREDIT, Cause.DELIVERED): Action.PUBLISH,
    (Finding.MISSING_CREDIT, Cause.DAMAGE): Action.PUBLISH,
    (Finding.MISSING_CREDIT, Cause.ROLLED_BACK): Action.PUBLISH,
    (Finding.MISSING_CREDIT, Cause.NO_MESSAGE): Action.PUBLISH,
    (Finding.ORDER_WITHOUT_MESSAGE, Cause.DISCARDED): Action.RESUME,
    (Finding.ORDER_WITHOUT_MESSAGE, Cause.ROLLED_BACK): Action.PUBLISH,
    (Finding.ORDER_WITHOUT_MESSAGE, Cause.NO_MESSAGE): Action.PUBLISH,
    (Finding.CREDIT_WITHOUT_ORDER, Cause.ROLLED_BACK): Action.REVERSE,
    (Finding.CREDIT_WITHOUT_ORDER, Cause.NO_TRANSACTION): Action.REVERSE,
    (Finding.CREDIT_WITHOUT_ORDER, Cause.NO_MESSAGE): Action.REVERSE,
    (Finding.MISSING_REVERSAL, Cause.DEAD_LETTER): Action.REVERSE,
    (Finding.MISSING_REVERSAL, Cause.CONSUMED): Action.REVERSE,
    (Finding.MISSING_REVERSAL, Cause.NO_MESSAGE): Action.REVERSE,
    (Finding.BALANCE_MISMATCH, Cause.LEDGER_SUM): Action.REBUILD_BALANCE,
    (Finding.MISSING_BALANCE, Cause.LEDGER_SUM): Action.REBUILD_BALANCE,
}
"""Findings without a remedy here need a person."""

_ORDER: Final = (Action.RESUME, Action.RETRY, Action.PUBLISH, Action.REVERSE, Action.REBUILD_BALANCE)
"""Balances come last: a reversal changes them."""

_OF_THE_ORDER: Final = "the order database contradicts itself: mend its rows by what the message and the customer say"
_OF_THE_LEDGER: Final = "find out which of order, message and ledger is right, and correct the other one"
ADVICE: Final[Mapping[Finding, str]] = {
    Finding.UNREADABLE_VALUE: "find out who wrote it, and write what should be there",
    Finding.LOG_GAP: "bring the missing files back, from a copy of the store, or reconcile with the messages of another broker",
    Finding.NOT_JUDGED: "its message may have lain in a gap of the commit log: look for it in a copy of the store",
    Finding.OVERDUE: "look for what holds it up: python -m rocketmq_broker.admin show, groups, dead-letters",
    Finding.MISSING_CREDIT: "the witnesses at hand do not say why: reconcile with --store, and look at its transaction row",
    Finding.CREDIT_WITHOUT_ORDER: "its transaction was committed, or nobody knows: restore the order row, or let the credit go",
    Finding.DOUBLE_CREDIT: "the ledger has lost its unique key: restore it, and decide which credit is to stay",
    Finding.MISSING_REVERSAL: "the witnesses at hand do not say why: reconcile with --store",
    Finding.REVERSED_ORDER: "find out who took the credit back: cancel the order, or credit it by hand",
    Finding.REVERSAL_WITHOUT_CREDIT: "find the credit that the reversal is for, or correct the ledger",
    Finding.REVERSAL_MISMATCH: _OF_THE_LEDGER,
    Finding.AMOUNT_MISMATCH: _OF_THE_LEDGER,
    Finding.POINTS_MISMATCH: _OF_THE_LEDGER,
    Finding.WRONG_CUSTOMER: _OF_THE_LEDGER,
    Finding.WRONG_TRANSACTION: _OF_THE_LEDGER,
    Finding.WRONG_TIME: "find out whose clock is wrong, and what else it dated: nothing is excused by a time that cannot be",
    Finding.STATE_MISMATCH: "find out what the customer wants, set the order's state by it, and credit or reverse what follows",
    Finding.DUPLICATE_TRANSACTION: "find out which of the transactions the half message names, and how the other one came about",
    Finding.UNKNOWN_ROW: "find out who wrote the row: no service of this version writes such a kind or state",
    Finding.DUPLICATE_ORDER: "the order database has lost its unique key: restore it, and decide which row is to stay",
    Finding.ROLLED_BACK_ORDER: _OF_THE_ORDER,
    Finding.ORDER_WITHOUT_TRANSACTION: _OF_THE_ORDER,
    Finding.TRANSACTION_WITHOUT_ORDER: _OF_THE_ORDER,
    Finding.ITEMS_MISMATCH: _OF_THE_ORDER,
    Finding.ORDER_WITHOUT_MESSAGE: "find out why its message is not in the commit log",
    Finding.MESSAGE_WITHOUT_ORDER: "consumers have heard of an order that does not exist: restore its row, or tell them",
    Finding.CURRENCY_MISMATCH: _OF_THE_LEDGER,
    Finding.MESSAGE_MISMATCH: _OF_THE_LEDGER,
    Finding.DOUBLED_DELIVERY: "consumers have had the message twice: the ledger counted it once; look at the others",
    Finding.DAMAGED_MESSAGE: "the record stays damaged until its segment expires: close the break, and look at the disk",
    Finding.BALANCE_MISMATCH: "rebuild the balance",
    Finding.MISSING_BALANCE: "rebuild the balance",
    Finding.UNCLASSIFIED: "no rule knows this: report it to those who keep the rules",
}


def plan_of(rows: Iterable[Mapping[str, Any]], route: Route, as_of_ms: int) -> RepairPlan:
    """Returns the plan for the rows of a reconciliation's outcome; healthy ones need nothing."""
    wrong = [row for row in rows if row["finding"] not in CONSISTENT]
    remedies = [(action, row) for row in wrong if (action := remedy_of(row)) is not None]
    remedies.sort(key=lambda remedy: (_ORDER.index(remedy[0]), _subject(remedy[1])))
    steps = [_step(f"{as_of_ms}-{number:04d}", action, row) for number, (action, row) in enumerate(remedies, 1)]
    people = [_for_a_person(row) for row in wrong if remedy_of(row) is None]
    return RepairPlan(as_of_ms, route.topic, route.consumer_group, steps, people)


def remedy_of(row: Mapping[str, Any]) -> Action | None:
    """Returns the repair of this row; None if a person has to decide."""
    if row["cause"] is None:
        return None
    action = REMEDIES.get((Finding(row["finding"]), Cause(row["cause"])))
    if action is Action.PUBLISH and (_order(row) is None or row["transaction_id"] is None):
        return None
    if action is Action.REVERSE and row["credit_cents"] is None:
        return None
    needs_transaction = action in (Action.RESUME, Action.RETRY)
    return None if needs_transaction and row["transaction_id"] is None else action


def _step(number: str, action: Action, row: Mapping[str, Any]) -> RepairStep:
    return RepairStep(
        id=number,
        action=action,
        subject=_subject(row),
        finding=row["finding"],
        evidence=evidence_of(row),
        cause=row["cause"],
        transaction_id=None if action is Action.REBUILD_BALANCE else row["transaction_id"],
        order=_order(row) if action is Action.PUBLISH else None,
        to_group_only=action is Action.PUBLISH and _was_delivered(row),
        credit_cents=int(row["credit_cents"]) if action is Action.REVERSE else None,
    )


def _was_delivered(row: Mapping[str, Any]) -> bool:
    """Returns whether other groups have received the message, or may have."""
    return row["delivered_at_ms"] is not None or row["cause"] == Cause.DAMAGE


def _order(row: Mapping[str, Any]) -> OrderSaid | None:
    said = (row["order_id"], row["customer"], row["order_cents"], row["currency"], row["ordered_at_ms"])
    return None if None in said else OrderSaid(said[0], said[1], int(said[2]), said[3], int(said[4]))


def _for_a_person(row: Mapping[str, Any]) -> ForAPerson:
    finding = Finding(row["finding"])
    return ForAPerson(_subject(row), finding.value, ADVICE[finding], evidence_of(row), row["cause"])


def _subject(row: Mapping[str, Any]) -> str:
    return str(row["order_id"] or row["customer"] or row["transaction_id"])
