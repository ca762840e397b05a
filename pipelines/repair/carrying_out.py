"""Executes a repair plan. Connects to the brokers and the credit service, and executes the steps that are not yet done."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from typing import Final

from pipelines.errors import PlanUnusable
from pipelines.repair.at_brokers import BrokerSteps
from pipelines.repair.at_credit_service import CreditServiceSteps
from pipelines.repair.audit import Audit
from pipelines.repair.plan import Action, RepairPlan, RepairStep, StepOutcome, StepState
from pipelines.reporting.report import say
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.session import Target, opened_session
from rocketmq_broker.message.text.printable import visible_name

AT_BROKERS: Final = frozenset({Action.RESUME, Action.RETRY, Action.PUBLISH})
"""The actions that brokers execute. The credit service executes the others."""

AtBrokers = Callable[[RepairStep], Awaitable[StepOutcome]]
"""A function that executes a step at the brokers, unless it is already done."""
AtCreditService = Callable[[RepairStep], StepOutcome]
"""A function that executes a step at the credit service, unless it is already done."""


def applied(plan: RepairPlan, audit: Audit, namesrv_addr: str | None, credit_service_url: str, key: str) -> bool:
    """Executes the plan, and prints the outcome of each step. Returns True if nothing is left to do. Raises PlanUnusable."""
    try:
        outcomes = asyncio.run(_carried_out(plan, audit, namesrv_addr, credit_service_url, key))
    except AdminError as error:
        raise PlanUnusable(f"the plan was not applied: {error}") from None
    counts = Counter(outcome.state for outcome in outcomes)
    say(
        f"{counts[StepState.DONE]} done, {counts[StepState.DONE_BEFORE]} done before, {counts[StepState.FAILED]} failed, "
        f"{len(plan.for_a_person)} for a person. Audit: {audit.path}"
    )
    return not counts[StepState.FAILED] and not plan.for_a_person


async def _carried_out(
    plan: RepairPlan, audit: Audit, namesrv_addr: str | None, credit_service_url: str, key: str
) -> list[StepOutcome]:
    with closing(CreditServiceSteps(credit_service_url, key)) as credit_service:
        if not needs_brokers(plan):
            return await _reported(plan, None, credit_service.carry_out, audit)
        async with opened_session(Target(namesrv_addr=namesrv_addr)) as session:
            return await _reported(plan, BrokerSteps(session, plan).carry_out, credit_service.carry_out, audit)


async def _reported(
    plan: RepairPlan, at_brokers: AtBrokers | None, at_credit_service: AtCreditService, audit: Audit
) -> list[StepOutcome]:
    outcomes = []
    async for step, outcome in carry_out(plan, at_brokers, at_credit_service, audit):
        outcomes.append(outcome)
        say(f"{outcome.state.value.replace('_', ' ')}: {step.action.value} {visible_name(step.subject)}: {outcome.detail}")
    return outcomes


async def carry_out(
    plan: RepairPlan, at_brokers: AtBrokers | None, at_credit_service: AtCreditService, audit: Audit
) -> AsyncIterator[tuple[RepairStep, StepOutcome]]:
    """Executes all steps of the plan, and yields their outcomes. Continues after a failed step. Raises PlanUnusable."""
    for step in plan.steps:
        audit.begin(step)
        if step.action in AT_BROKERS:
            assert at_brokers is not None
            outcome = await at_brokers(step)
        else:
            outcome = at_credit_service(step)
        audit.end(step, outcome)
        yield step, outcome


def needs_brokers(plan: RepairPlan) -> bool:
    """Returns True if the plan has steps for brokers."""
    return any(step.action in AT_BROKERS for step in plan.steps)
