"""How a step of a plan ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StepState(StrEnum):
    """`done_before` is as good as `done`: nothing was changed this time, because an earlier time had done it."""

    DONE = "done"
    DONE_BEFORE = "done_before"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How a step ended; `detail` says what was done, or why it was not."""

    state: StepState
    detail: str


def done(detail: str) -> StepOutcome:
    """Something was changed."""
    return StepOutcome(StepState.DONE, detail)


def done_before(detail: str) -> StepOutcome:
    """Nothing was left to do."""
    return StepOutcome(StepState.DONE_BEFORE, detail)


def failed(detail: str) -> StepOutcome:
    """Nothing was changed, and a person must look."""
    return StepOutcome(StepState.FAILED, detail)
