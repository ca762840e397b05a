"""Tests carrying out a plan: the credit service's steps, the audit, and a failed step."""

import json
from pathlib import Path

import httpx
import pytest

from pipelines.errors import PlanUnusable
from pipelines.repair import carrying_out
from pipelines.repair.at_credit_service import CreditServiceSteps
from pipelines.repair.audit import Audit
from pipelines.repair.carrying_out import applied, carry_out, needs_brokers
from pipelines.repair.plan import Action, RepairPlan, RepairStep, StepOutcome, StepState, done, failed


def step(number: int, action: Action, subject: str = "o") -> RepairStep:
    return RepairStep(
        id=f"77-{number}", action=action, subject=subject, finding="found", evidence=[], cause="why", credit_cents=5
    )


def plan(*steps: RepairStep) -> RepairPlan:
    return RepairPlan(77, "orders", "credit_service", list(steps), [])


async def test_a_step_that_fails_keeps_none_of_the_others_from_being_done(tmp_path: Path) -> None:
    steps = plan(step(1, Action.RESUME), step(2, Action.RETRY), step(3, Action.REVERSE))
    answers = {Action.RESUME: failed("gone"), Action.RETRY: done("retried")}

    async def at_brokers(step: RepairStep) -> StepOutcome:
        return answers[step.action]

    audit = Audit(tmp_path / "audit.jsonl")
    states = [outcome.state async for _, outcome in carry_out(steps, at_brokers, lambda _: done("reversed"), audit)]
    assert states == [StepState.FAILED, StepState.DONE, StepState.DONE]


@pytest.mark.parametrize(
    ("outcome", "for_a_person", "is_all_done"),
    [(done("reversed"), [], True), (failed("no order"), [], False), (done("reversed"), ["decide"], False)],
)
def test_a_plan_is_done_when_no_step_and_no_decision_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: StepOutcome, for_a_person: list[str], is_all_done: bool
) -> None:
    class CreditService:
        def __init__(self, *_: str) -> None:
            self.carry_out = lambda _: outcome

        def close(self) -> None:
            pass

    monkeypatch.setattr(carrying_out, "CreditServiceSteps", CreditService)
    repair = RepairPlan(77, "orders", "credit_service", [step(1, Action.REVERSE)], for_a_person)  # type: ignore[arg-type]
    assert applied(repair, Audit(tmp_path / "audit.jsonl"), None, "http://credits", "key") is is_all_done


async def test_the_audit_has_each_attempt_before_and_after_it(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.jsonl")
    for _ in range(2):
        async for _ in carry_out(plan(step(1, Action.REVERSE)), None, lambda _: done("reversed"), audit):
            pass
    lines = [json.loads(line) for line in audit.path.read_text().splitlines()]
    assert [(line["step"], line["action"], line["subject"], line["state"]) for line in lines] == [
        ("77-1", "reverse", "o", "begun"),
        ("77-1", "reverse", "o", "done"),
    ] * 2
    assert all("@" in line["by"] and line["at"].endswith("+00:00") for line in lines)


async def test_nothing_is_done_that_cannot_be_audited(tmp_path: Path) -> None:
    deeds: list[RepairStep] = []

    def deed(step: RepairStep) -> StepOutcome:
        deeds.append(step)
        return done("")

    with pytest.raises(PlanUnusable, match="audit"):
        async for _ in carry_out(plan(step(1, Action.REVERSE)), None, deed, Audit(tmp_path / "absent" / "audit.jsonl")):
            pass
    assert deeds == []


def test_only_messages_need_brokers() -> None:
    assert not needs_brokers(plan(step(1, Action.REVERSE), step(2, Action.REBUILD_BALANCE)))
    assert needs_brokers(plan(step(1, Action.PUBLISH)))


def at_credit_service(status: int, said: object, asked: list[httpx.Request]) -> CreditServiceSteps:
    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(status, json=said)

    return CreditServiceSteps("http://credits", "secret", httpx.MockTransport(answer))


REPAIRED = {"customer": "ada", "points_before": 12, "points_after": 0}


@pytest.mark.parametrize(("status", "state"), [(201, StepState.DONE), (200, StepState.DONE_BEFORE)])
def test_the_credit_service_is_asked_under_the_step_s_id(status: int, state: StepState) -> None:
    asked: list[httpx.Request] = []
    outcome = at_credit_service(status, REPAIRED, asked).carry_out(step(1, Action.REVERSE))
    assert outcome == StepOutcome(state, "balance of ada: 12 points before, 0 after")
    (request,) = asked
    assert (request.method, request.url.path) == ("PUT", "/repairs/77-1")
    assert request.headers["Authorization"] == "Bearer secret"
    assert json.loads(request.content) == {"action": "reverse", "order_id": "o", "amount_cents": 5, "reason": "found, why"}


def test_a_balance_is_rebuilt_by_its_customer() -> None:
    asked: list[httpx.Request] = []
    at_credit_service(201, REPAIRED, asked).carry_out(step(1, Action.REBUILD_BALANCE, "ada"))
    assert json.loads(asked[0].content) == {"action": "rebuild_balance", "customer": "ada", "reason": "found, why"}


def test_a_refusal_fails_the_step_with_its_reason() -> None:
    outcome = at_credit_service(409, {"title": "Conflict", "detail": "another amount"}, []).carry_out(step(1, Action.REVERSE))
    assert outcome == failed("the credit service refused: another amount")
    assert at_credit_service(502, None, []).carry_out(step(1, Action.REVERSE)) == failed("the credit service refused: status 502")


def test_a_service_that_is_away_fails_the_step() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    outcome = CreditServiceSteps("http://credits", "", httpx.MockTransport(refuse)).carry_out(step(1, Action.REVERSE))
    assert outcome == failed("the credit service does not answer: connection refused")
