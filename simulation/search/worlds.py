"""What the search needs of worlds: a plan for each seed, and a function that plays a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rocketmq_broker.testing.simulation.history import RecordedHappening
from rocketmq_broker.testing.simulation.plan import Plan


class FoundViolation(Protocol):
    """A broken promise, as a judge tells it."""

    @property
    def promise(self) -> str:
        """What must hold."""

    @property
    def text(self) -> str:
        """What was found."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The orders, transactions or messages that it is about."""


class PlayedWorld(Protocol):
    """A world after its end."""

    @property
    def digest(self) -> str:
        """The digest of its whole history."""

    @property
    def violations(self) -> Sequence[FoundViolation]:
        """The promises that did not hold."""

    @property
    def fired(self) -> Mapping[str, int]:
        """How often each kind of fault fired, and each rare branch was passed. One that is named with 0 must fire in others."""

    @property
    def happenings(self) -> Sequence[RecordedHappening]:
        """What a person may read of its history."""

    @property
    def simulated_s(self) -> float:
        """The seconds of its time."""


@dataclass(frozen=True, slots=True)
class Worlds:
    """The worlds that are searched. Both functions stand in modules, so that other processes can import them."""

    plan_of: Callable[[int], Plan]
    play: Callable[[Plan], PlayedWorld]


@dataclass(frozen=True, slots=True)
class FoundBroken:
    """A promise that a world broke."""

    promise: str
    text: str
    keys: tuple[str, ...] = ()
    at_ns: int | None = None
    """Nanoseconds since the world began; None if a judge looked at the end only."""


@dataclass(frozen=True, slots=True)
class WorldEnd:
    """How one world ended."""

    plan: Plan
    digest: str
    fired: Mapping[str, int]
    simulated_s: float
    cpu_s: float
    broken: tuple[FoundBroken, ...]
    happenings: tuple[RecordedHappening, ...] = ()
    """Empty unless they were asked for."""

    @property
    def seed(self) -> int:
        """The seed of its plan."""
        return self.plan.seed


RUNS_TO_ITS_END = "A world runs to its end."
"""The promise that a world breaks whose code raises an error, whose process dies, or which has no end."""


def without_end(plan: Plan, text: str, cpu_s: float = 0.0) -> WorldEnd:
    """Returns the end of a world that has none."""
    return WorldEnd(plan, "", {}, 0.0, cpu_s, (FoundBroken(RUNS_TO_ITS_END, text),))


def broken_of(violation: Any) -> FoundBroken:
    """Returns a judge's violation as data."""
    return FoundBroken(str(violation.promise), str(violation.text), tuple(violation.keys), getattr(violation, "at_ns", None))
