"""What the search needs of worlds: a plan for each seed, and a function that plays a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rocketmq_broker.testing.simulation.history import RecordedEvent
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
    def happenings(self) -> Sequence[RecordedEvent]:
        """What a person may read of its history."""

    @property
    def simulated_s(self) -> float:
        """The seconds of its time."""


@dataclass(frozen=True, slots=True)
class Worlds:
    """The worlds that are searched. Both functions stand in modules, so that other processes can import them."""

    plan_of: Callable[[int], Plan]
    play: Callable[[Plan], PlayedWorld]


_NUMBERS: Final = re.compile(r"0x[0-9a-f]+|\b(?=[a-f-]*[0-9])[0-9a-f-]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)
"""Addresses in memory, ids in hexadecimal digits, and numbers."""


@dataclass(frozen=True, slots=True)
class FoundBroken:
    """A promise that a world broke."""

    promise: str
    text: str
    keys: tuple[str, ...] = ()
    at_ns: int | None = None
    """Nanoseconds since the world began; None if a judge looked at the end only."""

    @property
    def mark(self) -> tuple[str, str]:
        """The promise, and the text without its names and numbers: they tell one failure from another."""
        text = self.text
        for key in sorted(filter(None, self.keys), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "#", text)
        return self.promise, _NUMBERS.sub("#", text)


@dataclass(frozen=True, slots=True)
class WorldEnd:
    """How one world ended."""

    plan: Plan
    digest: str
    fired: Mapping[str, int]
    simulated_s: float
    cpu_s: float
    broken: tuple[FoundBroken, ...]
    happenings: tuple[RecordedEvent, ...] = ()
    """Empty unless they were asked for."""

    @property
    def seed(self) -> int:
        """The seed of its plan."""
        return self.plan.seed

    def fails_like(self, other: WorldEnd) -> bool:
        """Returns whether this world has the failure that the other, which failed, had first."""
        return any(broken.mark == other.broken[0].mark for broken in self.broken)


RUNS_TO_ITS_END = "A world runs to its end."
"""The promise that a world breaks whose code raises an error, whose process dies, or which has no end."""


def without_end(plan: Plan, text: str, cpu_s: float = 0.0) -> WorldEnd:
    """Returns the end of a world that has none."""
    return WorldEnd(plan, "", {}, 0.0, cpu_s, (FoundBroken(RUNS_TO_ITS_END, text),))


def broken_of(violation: Any) -> FoundBroken:
    """Returns a judge's violation as data."""
    return FoundBroken(str(violation.promise), str(violation.text), tuple(violation.keys), getattr(violation, "at_ns", None))
