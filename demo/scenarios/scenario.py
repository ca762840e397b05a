"""A scenario, and the record of a run of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from demo.scenarios.questions import Question, ScenarioFinding
from demo.scenarios.stage import Stage
from rocketmq_broker.admin.timeline.event import Arrow, Event

_ON_RECORD: Final = "scenario"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fault, with the things to watch and to expect."""

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
class ScenarioStep:
    """A step of the run, done or seen by the scenario."""

    at_ms: int
    what: str
    arrow: Arrow | None = None
    """The fault, or its mending, as an arrow of the sequence diagram."""


class RunState(Enum):
    """The state of a run. The values are words for the screen."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(slots=True)
class ScenarioRun:
    """One run; written by the thread that plays it, read by the screens."""

    number: int
    scenario: Scenario
    customer: str
    """Nobody else has this name: it tells the run's orders from all others."""
    state: RunState = RunState.RUNNING
    steps: list[ScenarioStep] = field(default_factory=list)
    transaction_id: str | None = None
    key: str | None = None
    """The key of the transaction's message: other transactions of the order have it too."""
    findings: list[ScenarioFinding] = field(default_factory=list)
    failure: str | None = None

    @property
    def is_consistent(self) -> bool:
        """True if the run has ended with only right answers."""
        return self.state is RunState.ENDED and bool(self.findings) and all(finding.is_right for finding in self.findings)

    @property
    def word(self) -> str | None:
        """The word that finds all transactions of the run; None before the first one."""
        return self.key or self.transaction_id

    @property
    def events(self) -> list[Event]:
        """The steps that are arrows, for the timeline of the run's transaction."""
        return [Event(step.at_ms, step.what, _ON_RECORD, step.arrow) for step in self.steps if step.arrow is not None]

    def note(self, what: str, arrow: Arrow | None = None) -> None:
        """Records a step with the present time."""
        self.steps.append(ScenarioStep(time.time_ns() // 1_000_000, what, arrow))
