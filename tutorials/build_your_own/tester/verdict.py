"""The result of a stage."""

from collections.abc import Sequence
from dataclasses import dataclass

from tutorials.build_your_own.curriculum import Stage
from tutorials.build_your_own.tester.timeline import Event
from tutorials.build_your_own.tester.trial import Claim, ClaimFailed


@dataclass(frozen=True, slots=True)
class Verdict:
    """The claims of a stage that hold, and the first claim that failed."""

    stage: Stage
    held: Sequence[Claim]
    failure: ClaimFailed | None
    events: Sequence[Event]
    output: str
    """The last lines that the broker printed."""
    took_ms: int

    @property
    def is_passed(self) -> bool:
        """True if all claims of the stage hold."""
        return self.failure is None
