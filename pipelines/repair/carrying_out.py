"""Applies a plan: opens the ways to the brokers and to the credit service, and tells of each step."""

from __future__ import annotations

import asyncio
from collections import Counter

from pipelines.errors import PlanUnusable
from pipelines.repair.applying import carry_out, needs_brokers
from pipelines.repair.at_brokers import BrokerSteps
from pipelines.repair.at_credit_service import CreditServiceSteps
from pipelines.repair.audit import Audit
from pipelines.repair.outcome import StepOutcome, StepState
from pipelines.repair.plan import Plan, Step
from pipelines.telling.screen import say
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.session import Target, opened_session
from rocketmq_broker.message.printable import visible_name


def applied(plan: Plan, audit: Audit, namesrv_addr: str | None, credit_service_url: str, key: str) -> bool:
    """Does what the plan says, and tells of each step. Whether nothing is left to do. Raises PlanUnusable."""
    try:
        outcomes = asyncio.run(_carried_out(plan, audit, namesrv_addr, credit_service_url, key))
    except AdminError as error:
        raise PlanUnusable(f"the plan was not applied: {error}") from None
    counts = Counter(outcome.state for _, outcome in outcomes)
    say(
        f"{counts[StepState.DONE]} done, {counts[StepState.DONE_BEFORE]} done before, {counts[StepState.FAILED]} failed, "
        f"{len(plan.for_a_person)} for a person. Audit: {audit.path}"
    )
    return not counts[StepState.FAILED] and not plan.for_a_person


async def _carried_out(
    plan: Plan, audit: Audit, namesrv_addr: str | None, credit_service_url: str, key: str
) -> list[tuple[Step, StepOutcome]]:
    credit_service = CreditServiceSteps(credit_service_url, key)
    try:
        if not needs_brokers(plan):
            return await _told(plan, None, credit_service, audit)
        async with opened_session(Target(namesrv_addr=namesrv_addr)) as session:
            return await _told(plan, BrokerSteps(session, plan), credit_service, audit)
    finally:
        credit_service.close()


async def _told(
    plan: Plan, brokers: BrokerSteps | None, credit_service: CreditServiceSteps, audit: Audit
) -> list[tuple[Step, StepOutcome]]:
    outcomes = []
    async for step, outcome in carry_out(plan, brokers, credit_service.carry_out, audit):
        outcomes.append((step, outcome))
        say(f"{outcome.state.value.replace('_', ' ')}: {step.action.value} {visible_name(step.subject)}: {outcome.detail}")
    return outcomes
