"""Repair plans: the steps, the outcomes of the steps, and the findings that a person must resolve."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from pipelines.errors import PlanUnusable
from pipelines.run_folders import replace_file
from rocketmq_broker.message.text.printable import visible_json

VERSION: Final = 1


class Action(StrEnum):
    """The action of a step."""

    RESUME = "resume"
    """A discarded half message becomes pending again, and the broker checks back."""
    RETRY = "retry"
    """The dead letter is redelivered to the consumer group."""
    PUBLISH = "publish"
    """The order's message is sent again, either to its topic or only to the consumer group that writes the credits."""
    REVERSE = "reverse"
    """The credit service reverses a credit without an order."""
    REBUILD_BALANCE = "rebuild_balance"
    """The credit service sets a balance to the sum of the customer's ledger entries."""


class OrderFields(msgspec.Struct, frozen=True):
    """The fields of an order row that the order's message contains."""

    order_id: str
    customer: str
    total_cents: int
    currency: str
    created_at_ms: int


class RepairStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of a repair plan, with the finding and the evidence that it is based on."""

    id: str
    """A unique id, which ensures that the step is executed only once."""
    action: Action
    subject: str
    """The order id, or the customer for a balance."""
    finding: str
    evidence: list[str]
    cause: str | None = None
    transaction_id: str | None = None
    order: OrderFields | None = None
    """The order of a message that is published."""
    to_group_only: bool = False
    """True if other groups have received the message. The step then sends it only to the retry topic of the plan's group."""
    credit_cents: int | None = None
    """The amount of the credit to reverse. The step fails if the ledger has another amount."""


class ManualDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finding without a remedy, which a person must resolve."""

    subject: str
    finding: str
    advice: str
    evidence: list[str]
    cause: str | None = None


class RepairPlan(msgspec.Struct, frozen=True):
    """The steps for the findings of a reconciliation, in the order of execution."""

    as_of_ms: int
    topic: str
    consumer_group: str
    steps: list[RepairStep]
    for_a_person: list[ManualDecision]
    version: int = VERSION


def write_plan(plan: RepairPlan, path: Path) -> None:
    """Writes the plan as JSON, atomically. Only its owner can read the file. Raises PlanUnusable."""
    text = visible_json(msgspec.json.format(msgspec.json.encode(plan), indent=2).decode())
    try:
        replace_file(path, text.encode() + b"\n")
    except OSError as error:
        raise PlanUnusable(f"plan {path}: {error.strerror}") from None


def read_plan(path: Path) -> RepairPlan:
    """Reads a plan from a file. Raises PlanUnusable."""
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=RepairPlan)
    except OSError as error:
        raise PlanUnusable(f"plan {path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise PlanUnusable(f"{path} is not a repair plan: {error}") from None
    if plan.version != VERSION:
        raise PlanUnusable(f"plan {path} has version {plan.version}, not {VERSION}: make a new plan with this program")
    return plan


class StepState(StrEnum):
    """The state of a step. `done_before` means that an earlier execution had made the change."""

    DONE = "done"
    DONE_BEFORE = "done_before"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of a step. `detail` is the change, or the reason why there was none."""

    state: StepState
    detail: str


def done(detail: str) -> StepOutcome:
    """Returns the outcome of a step that changed something."""
    return StepOutcome(StepState.DONE, detail)


def done_before(detail: str) -> StepOutcome:
    """Returns the outcome of a step that was already done."""
    return StepOutcome(StepState.DONE_BEFORE, detail)


def failed(detail: str) -> StepOutcome:
    """Returns the outcome of a failed step, which a person must examine."""
    return StepOutcome(StepState.FAILED, detail)
