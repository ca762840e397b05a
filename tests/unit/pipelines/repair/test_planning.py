"""Tests which repair each finding requires."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import PlanUnusable
from pipelines.judging.classes import CONSISTENT, Cause, Finding
from pipelines.judging.judge import FINDING_COLUMNS
from pipelines.judging.route import Route
from pipelines.repair.plan import Action, OrderFields, RepairPlan, read_plan, write_plan
from pipelines.repair.planning import ADVICE, REMEDIES, plan_of, remedy_of

ROUTE = Route()


def found(finding: Finding, cause: Cause | None = None, **more: Any) -> dict[str, Any]:
    said = {
        "finding": finding.value, "cause": cause and cause.value, "stage": "ordered", "order_id": "o", "customer": "ada",
        "currency": "EUR", "order_count": 1, "order_cents": Decimal(1250), "credit_count": 0, "credit_cents": Decimal(1250),
        "transaction_id": "T-o", "ordered_at_ms": 1_700_000_000_000,
    }  # fmt: skip
    return {**dict.fromkeys(FINDING_COLUMNS), **said, **more}


def invented_credit(cause: Cause = Cause.NO_MESSAGE, **more: Any) -> dict[str, Any]:
    said = {"order_count": 0, "order_cents": None, "credit_count": 1, "credit_cents": Decimal(1250), "stage": "credited"}
    return found(Finding.CREDIT_WITHOUT_ORDER, cause, **{**said, **more})


def wrong_balance(**more: Any) -> dict[str, Any]:
    said = {"stage": "credited", "order_id": None, "transaction_id": None, "order_count": None, "points": 12, "balance": 13}
    return found(Finding.BALANCE_MISMATCH, Cause.LEDGER_SUM, **{**said, **more})


def test_each_wrong_class_has_advice_for_a_person_and_no_healthy_one_a_remedy() -> None:
    assert set(ADVICE) == set(Finding) - CONSISTENT
    assert {finding for finding, _ in REMEDIES} & CONSISTENT == set()


@pytest.mark.parametrize(("finding", "cause"), list(REMEDIES))
def test_a_remedy_is_planned_with_its_evidence(finding: Finding, cause: Cause) -> None:
    plan = plan_of([found(finding, cause)], ROUTE, 77)
    (step,) = plan.steps
    assert step.action is REMEDIES[finding, cause]
    assert step.evidence[0].startswith(f"{finding.value}: ")
    assert plan.for_a_person == []


def test_healthy_orders_need_nothing() -> None:
    plan = plan_of([found(finding) for finding in CONSISTENT], ROUTE, 77)
    assert (plan.steps, plan.for_a_person) == ([], [])


def test_what_no_rule_decides_is_listed_for_a_person() -> None:
    plan = plan_of([found(Finding.AMOUNT_MISMATCH, Cause.LEDGER)], ROUTE, 77)
    assert plan.steps == []
    assert [(one.subject, one.finding, one.cause) for one in plan.for_a_person] == [("o", "amount_mismatch", "ledger")]


def test_a_credit_whose_transaction_was_committed_is_not_reversed() -> None:
    """A credit with a committed transaction is not reversed, because the fault is in the order's row."""
    assert remedy_of(invented_credit(Cause.ORDER_LOST)) is None
    assert remedy_of(invented_credit(Cause.UNKNOWN)) is None
    assert remedy_of(invented_credit(Cause.ROLLED_BACK)) is Action.REVERSE


def test_a_message_is_not_published_for_an_order_that_does_not_say_all() -> None:
    lost = found(Finding.MISSING_CREDIT, Cause.NO_MESSAGE)
    assert remedy_of(lost) is Action.PUBLISH
    assert remedy_of({**lost, "currency": None}) is None
    assert remedy_of({**lost, "transaction_id": None}) is None


def test_what_other_groups_have_had_goes_to_the_one_group_alone() -> None:
    consumed = found(Finding.MISSING_CREDIT, Cause.CONSUMED, delivered_at_ms=5)
    unheard = found(Finding.MISSING_CREDIT, Cause.ROLLED_BACK, order_id="p")
    steps = plan_of([consumed, unheard], ROUTE, 77).steps
    assert [(step.subject, step.to_group_only) for step in steps] == [("o", True), ("p", False)]
    assert steps[0].order == OrderFields("o", "ada", 1250, "EUR", 1_700_000_000_000)


@pytest.mark.parametrize(("finding", "cause"), [key for key, action in REMEDIES.items() if action is not Action.REBUILD_BALANCE])
def test_nothing_is_sent_or_reversed_while_the_inbox_has_a_message_of_the_order(finding: Finding, cause: Cause) -> None:
    plan = plan_of([found(finding, cause, received_at_ms=5)], ROUTE, 77)
    assert plan.steps == []
    assert [one.advice for one in plan.for_a_person] == [
        "the credit service has the message in its inbox; plan again when it has been processed"
    ]


@pytest.mark.parametrize(
    ("finding", "cause", "advice"),
    [
        (Finding.MISSING_CREDIT, Cause.PARKED, "then run python -m credit_service inbox retry"),
        (Finding.MISSING_REVERSAL, Cause.PARKED, "then run python -m credit_service inbox retry"),
        (Finding.MESSAGE_MISMATCH, Cause.PARKED, "then run python -m credit_service inbox retry"),
        (Finding.MISSING_CREDIT, Cause.DISMISSED, "credit it manually, or cancel the order"),
        (Finding.OVERDUE, Cause.WAITING, "python -m credit_service inbox list"),
        (Finding.DUPLICATE_ORDER, None, "decide which row to keep"),
    ],
)
def test_a_person_is_told_what_to_do_with_a_message_in_the_inbox(finding: Finding, cause: Cause | None, advice: str) -> None:
    (person,) = plan_of([found(finding, cause, received_at_ms=60_000, last_error="Error: locked")], ROUTE, 77).for_a_person
    assert advice in person.advice
    assert "in the credit service's inbox since 1970-01-01 00:01:00 UTC" in person.evidence
    assert "the credit service failed on it: Error: locked" in person.evidence


def test_balances_are_rebuilt_after_all_reversals() -> None:
    plan = plan_of([wrong_balance(), invented_credit(), found(Finding.MISSING_CREDIT, Cause.DISCARDED)], ROUTE, 77)
    assert [(step.id, step.action, step.subject) for step in plan.steps] == [
        ("77-0001", Action.RESUME, "o"),
        ("77-0002", Action.REVERSE, "o"),
        ("77-0003", Action.REBUILD_BALANCE, "ada"),
    ]
    assert plan.steps[1].credit_cents == 1250


def test_the_evidence_is_what_the_witnesses_say() -> None:
    (step,) = plan_of([found(Finding.MISSING_CREDIT, Cause.DISCARDED, half_at_ms=0, discarded_at_ms=60_000)], ROUTE, 77).steps
    assert step.evidence == [
        "missing_credit: an order without a credit, although its transaction is COMMITTED",
        "cause discarded: the broker gave up check-backs; run python -m rocketmq_broker.admin resume",
        "order database: 1 row, 1250 cents EUR, customer ada, 2023-11-14 22:13:20 UTC",
        "transaction T-o",
        "half message stored 1970-01-01 00:00:00 UTC",
        "half message discarded 1970-01-01 00:01:00 UTC",
        "ledger: no credit",
    ]
    (step,) = plan_of([wrong_balance()], ROUTE, 77).steps
    assert step.evidence[-1] == "customer ada has a balance of 13 points; the ledger adds up to 12"
    (step,) = plan_of([invented_credit()], ROUTE, 77).steps
    assert step.evidence[-3:] == ["order database: no such order", "transaction T-o", "ledger: 1 row, 1250 cents"]


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = plan_of(
        [wrong_balance(), invented_credit(), found(Finding.MISSING_CREDIT, Cause.CONSUMED), found(Finding.DUPLICATE_ORDER)],
        ROUTE,
        77,
    )
    write_plan(plan, tmp_path / "new" / "plan.json")
    assert read_plan(tmp_path / "new" / "plan.json") == plan


def test_a_file_that_is_no_plan_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(PlanUnusable, match=r"plan .*plan\.json: No such file"):
        read_plan(path)
    path.write_text('{"steps": 1}')
    with pytest.raises(PlanUnusable, match="is not a repair plan"):
        read_plan(path)
    write_plan(RepairPlan(1, "orders", "credit_service", [], [], version=2), path)
    with pytest.raises(PlanUnusable, match="version 2"):
        read_plan(path)


def test_a_moment_that_no_calendar_has_is_told_as_a_number() -> None:
    (person,) = plan_of(
        [found(Finding.WRONG_TIME, Cause.FUTURE, credited_at_ms=2**63 - 1, credit_count=1)], ROUTE, 1
    ).for_a_person
    assert f"{2**63 - 1} ms since 1970" in person.evidence[-1]
