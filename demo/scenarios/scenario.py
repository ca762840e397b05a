"""What a scenario is, and what a run of it leaves behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from demo.scenarios.questions import Finding, Question
from demo.scenarios.stage import Stage


@dataclass(frozen=True, slots=True)
class Scenario:
    """Something that goes wrong, with what to watch and what to expect."""

    name: str
    """In addresses."""
    title: str
    what_happens: str
    watch: str
    expect: str
    verdict: tuple[Question, ...]
    """What is asked in the end of the databases, about the customer of the run."""
    play: Callable[[Stage], None]
    """Makes it happen, and returns when it is over. Raises DemoError."""
    failpoint: str | None = None
    """The failpoint that is armed for its customer before it begins."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that the scenario did or saw."""

    at_ms: int
    what: str


class State(Enum):
    """How far a run is. The values are words for the screen."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(slots=True)
class Run:
    """One run; written by the thread that plays it, read by the screens."""

    number: int
    scenario: Scenario
    customer: str
    """Nobody else has this name: it tells the run's orders from all others."""
    state: State = State.RUNNING
    steps: list[Step] = field(default_factory=list)
    transaction_id: str | None = None
    findings: list[Finding] = field(default_factory=list)
    failure: str | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether everything is as it should be."""
        return self.state is State.ENDED and bool(self.findings) and all(finding.is_right for finding in self.findings)

    def note(self, what: str) -> None:
        """Something was done or seen just now."""
        self.steps.append(Step(time.time_ns() // 1_000_000, what))
