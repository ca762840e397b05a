"""Chooses the repair for each finding from its class and cause."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pipelines.judging.classes import CONSISTENT, Cause, Finding
from pipelines.judging.route import Route
from pipelines.repair.evidence import evidence_of
from pipelines.repair.plan import Action, ManualDecision, OrderFields, RepairPlan, RepairStep

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
"""Maps a class and a cause to the action that repairs the finding. A person must resolve all other findings."""

_ORDER: Final = (Action.RESUME, Action.RETRY, Action.PUBLISH, Action.REVERSE, Action.REBUILD_BALANCE)
"""The order of execution. Balances are rebuilt last, because reversals change them."""

_OF_THE_ORDER: Final = "the order database contradicts itself; correct its rows with the message and the customer"
_OF_THE_LEDGER: Final = "find out which of order, message and ledger is right, and correct the others"
ADVICE: Final[Mapping[Finding, str]] = {
    Finding.UNREADABLE_VALUE: "find out what wrote it, and correct the value",
    Finding.LOG_GAP: "restore the missing files from a copy of the store, or reconcile with another broker's messages",
    Finding.NOT_JUDGED: "its message may have been in a gap of the commit log; look for it in a copy of the store",
    Finding.OVERDUE: "find out what delays it: python -m rocketmq_broker.admin show, groups, dead-letters",
    Finding.MISSING_CREDIT: "the available data does not show why; reconcile with --store, and look at its transaction row",
    Finding.CREDIT_WITHOUT_ORDER: "its transaction was committed, or is unknown; restore the order row, or reverse the credit",
    Finding.DOUBLE_CREDIT: "the ledger has lost its unique key; restore it, and decide which credit to keep",
    Finding.MISSING_REVERSAL: "the available data does not show why; reconcile with --store",
    Finding.REVERSED_ORDER: "find out who reversed the credit; cancel the order, or credit it manually",
    Finding.REVERSAL_WITHOUT_CREDIT: "find the credit of the reversal, or correct the ledger",
    Finding.REVERSAL_MISMATCH: _OF_THE_LEDGER,
    Finding.AMOUNT_MISMATCH: _OF_THE_LEDGER,
    Finding.POINTS_MISMATCH: _OF_THE_LEDGER,
    Finding.WRONG_CUSTOMER: _OF_THE_LEDGER,
    Finding.WRONG_TRANSACTION: _OF_THE_LEDGER,
    Finding.WRONG_TIME: "find out which clock is wrong, and which other rows have its times",
    Finding.STATE_MISMATCH: "ask the customer, set the order's state, and credit or reverse the order accordingly",
    Finding.DUPLICATE_TRANSACTION: "find out which of the transactions is the half message's, and what wrote the other one",
    Finding.UNKNOWN_ROW: "find out what wrote the row; no service of this version writes such a kind or state",
    Finding.DUPLICATE_ORDER: "the order database has lost its unique key; restore it, and decide which row to keep",
    Finding.ROLLED_BACK_ORDER: _OF_THE_ORDER,
    Finding.ORDER_WITHOUT_TRANSACTION: _OF_THE_ORDER,
    Finding.TRANSACTION_WITHOUT_ORDER: _OF_THE_ORDER,
    Finding.ITEMS_MISMATCH: _OF_THE_ORDER,
    Finding.ORDER_WITHOUT_MESSAGE: "find out why its message is not in the commit log",
    Finding.MESSAGE_WITHOUT_ORDER: "consumers received a message of an order that does not exist; restore its row, or fix them",
    Finding.CURRENCY_MISMATCH: _OF_THE_LEDGER,
    Finding.MESSAGE_MISMATCH: _OF_THE_LEDGER,
    Finding.DOUBLED_DELIVERY: "consumers received the message twice; the ledger counted it once; check the other consumers",
    Finding.DAMAGED_MESSAGE: "the record stays damaged until its segment expires; close the break, and check the disk",
    Finding.BALANCE_MISMATCH: "rebuild the balance",
    Finding.MISSING_BALANCE: "rebuild the balance",
    Finding.UNCLASSIFIED: "no rule matches; report it to the maintainers of the rules",
}


OF_THE_INBOX: Final[Mapping[Cause, str]] = {
    Cause.WAITING: "find out why the credit service does not process its inbox: python -m credit_service inbox list",
    Cause.DISMISSED: "find out why its message was dismissed; credit it manually, or cancel the order",
    Cause.PARKED: "remove the reason (python -m credit_service inbox list), then run python -m credit_service inbox retry",
}
"""The advice for findings with these causes. It takes precedence over ADVICE."""
_WHILE_IN_THE_INBOX: Final = "the credit service has the message in its inbox; plan again when it has been processed"


def plan_of(rows: Iterable[Mapping[str, Any]], route: Route, as_of_ms: int) -> RepairPlan:
    """Returns the plan for the rows of a reconciliation's outcome."""
    wrong = [row for row in rows if row["finding"] not in CONSISTENT]
    remedies = [(action, row) for row in wrong if (action := remedy_of(row)) is not None]
    remedies.sort(key=lambda remedy: (_ORDER.index(remedy[0]), _subject(remedy[1])))
    steps = [_step(f"{as_of_ms}-{number:04d}", action, row) for number, (action, row) in enumerate(remedies, 1)]
    people = [_for_a_person(row) for row in wrong if remedy_of(row) is None]
    return RepairPlan(as_of_ms, route.topic, route.consumer_group, steps, people)


def remedy_of(row: Mapping[str, Any]) -> Action | None:
    """Returns the repair, or None if a person must decide or the credit service must still process a message."""
    if row["cause"] is None or row["received_at_ms"] is not None:
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
    """Returns True if other groups have received the message, or may have received it."""
    return row["delivered_at_ms"] is not None or row["cause"] == Cause.DAMAGE


def _order(row: Mapping[str, Any]) -> OrderFields | None:
    said = (row["order_id"], row["customer"], row["order_cents"], row["currency"], row["ordered_at_ms"])
    return None if None in said else OrderFields(said[0], said[1], int(said[2]), said[3], int(said[4]))


def _for_a_person(row: Mapping[str, Any]) -> ManualDecision:
    finding = Finding(row["finding"])
    return ManualDecision(_subject(row), finding.value, _advice(row), evidence_of(row), row["cause"])


def _advice(row: Mapping[str, Any]) -> str:
    finding, cause = Finding(row["finding"]), None if row["cause"] is None else Cause(row["cause"])
    if cause is not None and cause in OF_THE_INBOX:
        return OF_THE_INBOX[cause]
    has_remedy = cause is not None and (finding, cause) in REMEDIES
    return _WHILE_IN_THE_INBOX if has_remedy and row["received_at_ms"] is not None else ADVICE[finding]


def _subject(row: Mapping[str, Any]) -> str:
    return str(row["order_id"] or row["customer"] or row["transaction_id"])
