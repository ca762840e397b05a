"""A scenario, and the record of a run."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from demo.scenarios.context import ScenarioContext
from demo.scenarios.questions import Question, ScenarioFinding
from rocketmq_broker.admin.timeline.event import Arrow, Event

_ON_RECORD: Final = "scenario"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fault that users can cause, with its description and the expected result."""

    name: str
    """The name in URLs."""
    title: str
    what_happens: str
    watch: str
    expect: str
    verdict: tuple[Question, ...]
    """The questions about the databases, which are asked at the end of the run."""
    play: Callable[[ScenarioContext], None]
    """A function that causes the fault, and returns when the fault is over. Raises DemoError."""
    failpoint: str | None = None
    """The failpoint that is armed for the run's customer before the run starts."""


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """A step of a run, with its time and description."""

    at_ms: int
    what: str
    arrow: Arrow | None = None
    """The arrow in the sequence diagram. None unless the step is a fault or its end."""


class RunState(Enum):
    """The state of a run. The values are shown on the screen."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(slots=True)
class ScenarioRun:
    """A run of a scenario. The thread that runs the scenario writes the fields, and the console's screens read them."""

    number: int
    scenario: Scenario
    customer: str
    """A unique name, which identifies the run's orders."""
    state: RunState = RunState.RUNNING
    steps: list[ScenarioStep] = field(default_factory=list)
    transaction_id: str | None = None
    key: str | None = None
    """The key of the transaction's message. Other transactions for the same order have the same key."""
    findings: list[ScenarioFinding] = field(default_factory=list)
    failure: str | None = None

    @property
    def is_consistent(self) -> bool:
        """True if the run has ended and all answers are as expected."""
        return self.state is RunState.ENDED and bool(self.findings) and all(finding.is_right for finding in self.findings)

    @property
    def word(self) -> str | None:
        """The search term for all transactions of the run; None before the first transaction."""
        return self.key or self.transaction_id

    @property
    def events(self) -> list[Event]:
        """The steps that have arrows, for the timeline of the run's transaction."""
        return [Event(step.at_ms, step.what, _ON_RECORD, step.arrow) for step in self.steps if step.arrow is not None]

    def note(self, what: str, arrow: Arrow | None = None) -> None:
        """Records a step with the current time."""
        self.steps.append(ScenarioStep(time.time_ns() // 1_000_000, what, arrow))
