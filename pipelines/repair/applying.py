"""Carrying out a plan, step by step. Each step is done once, however often the plan is applied."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from pipelines.repair.audit import Audit
from pipelines.repair.outcome import StepOutcome
from pipelines.repair.plan import Action, Plan, Step

AT_BROKERS: Final = frozenset({Action.RESUME, Action.RETRY, Action.PUBLISH})
"""The other actions are the credit service's."""


class AsyncSteps(Protocol):
    """Who carries out the brokers' steps."""

    async def carry_out(self, step: Step) -> StepOutcome:
        """Does the step unless it is done."""


async def carry_out(
    plan: Plan, brokers: AsyncSteps | None, at_credit_service: Callable[[Step], StepOutcome], audit: Audit
) -> AsyncIterator[tuple[Step, StepOutcome]]:
    """Does all steps of the plan; one that fails keeps none of the others from being done. Raises PlanUnusable."""
    for step in plan.steps:
        audit.begin(step)
        if step.action in AT_BROKERS:
            assert brokers is not None
            outcome = await brokers.carry_out(step)
        else:
            outcome = at_credit_service(step)
        audit.end(step, outcome)
        yield step, outcome


def needs_brokers(plan: Plan) -> bool:
    """Whether a step of the plan is the brokers'."""
    return any(step.action in AT_BROKERS for step in plan.steps)
