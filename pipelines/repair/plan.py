"""A plan of repair: its steps, their outcomes, and the decisions left to a person. People read the file before they apply it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from pipelines.errors import PlanUnusable
from rocketmq_broker.message.text.printable import visible_json

VERSION: Final = 1


class Action(StrEnum):
    """The action of a step."""

    RESUME = "resume"
    """The broker checks back once more: a discarded half message becomes pending again."""
    RETRY = "retry"
    """The consumer group gets its dead letter once more."""
    PUBLISH = "publish"
    """The order's message is sent once more: to its topic, or to the one group that has lost its credit."""
    REVERSE = "reverse"
    """The credit service writes a reversal of a credit that no order stands behind."""
    REBUILD_BALANCE = "rebuild_balance"
    """The credit service sets a balance to the sum of the customer's ledger entries."""


class OrderSaid(msgspec.Struct, frozen=True):
    """The fields of the order row that an order's message has."""

    order_id: str
    customer: str
    total_cents: int
    currency: str
    created_at_ms: int


class RepairStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """One repair."""

    id: str
    """Unique for good: the executor remembers it, and does the step once."""
    action: Action
    subject: str
    """The order, or the customer for a balance."""
    finding: str
    evidence: list[str]
    cause: str | None = None
    transaction_id: str | None = None
    order: OrderSaid | None = None
    """Of a message that is published."""
    to_group_only: bool = False
    """Whether other groups have had the message: then it goes to the retry topic of the group that needs it."""
    credit_cents: int | None = None
    """Of a credit that is reversed: another amount in the ledger stops the step."""


class ForAPerson(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finding without a rule, for a person to decide."""

    subject: str
    finding: str
    advice: str
    evidence: list[str]
    cause: str | None = None


class RepairPlan(msgspec.Struct, frozen=True):
    """All steps of one reconciliation, in the order of their execution."""

    as_of_ms: int
    topic: str
    consumer_group: str
    steps: list[RepairStep]
    for_a_person: list[ForAPerson]
    version: int = VERSION


def write_plan(plan: RepairPlan, path: Path) -> None:
    """Writes the plan as JSON, whole or not at all; only its owner can read it. Raises PlanUnusable."""
    text = visible_json(msgspec.json.format(msgspec.json.encode(plan), indent=2).decode())
    fresh = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        with open(fresh, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(text.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
    except OSError as error:
        raise PlanUnusable(f"plan {path}: {error.strerror}") from None


def read_plan(path: Path) -> RepairPlan:
    """Reads the plan in a file. Raises PlanUnusable."""
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=RepairPlan)
    except OSError as error:
        raise PlanUnusable(f"plan {path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise PlanUnusable(f"plan {path} is no plan of repair: {error}") from None
    if plan.version != VERSION:
        raise PlanUnusable(f"plan {path} has version {plan.version}: this program carries out version {VERSION}")
    return plan


class StepState(StrEnum):
    """The state of a step. `done_before` is as good as `done`: an earlier execution had made the change."""

    DONE = "done"
    DONE_BEFORE = "done_before"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of a step; `detail` names the change, or the reason why there was none."""

    state: StepState
    detail: str


def done(detail: str) -> StepOutcome:
    """Returns the outcome of a change."""
    return StepOutcome(StepState.DONE, detail)


def done_before(detail: str) -> StepOutcome:
    """Returns the outcome of a step with nothing left to do."""
    return StepOutcome(StepState.DONE_BEFORE, detail)


def failed(detail: str) -> StepOutcome:
    """Returns the outcome without a change, for a person to examine."""
    return StepOutcome(StepState.FAILED, detail)
