"""Defines the interface of worlds for the search: a plan for each seed, and a function that plays a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.plan import Plan


class FoundViolation(Protocol):
    """A judge's violation."""

    @property
    def promise(self) -> str:
        """The promise that was violated."""

    @property
    def text(self) -> str:
        """A description of the violation."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The orders, transactions or messages concerned."""


class PlayedWorld(Protocol):
    """A played world."""

    @property
    def digest(self) -> str:
        """The digest of its history."""

    @property
    def violations(self) -> Sequence[FoundViolation]:
        """The broken promises."""

    @property
    def fired(self) -> Mapping[str, int]:
        """How often each kind of fault fired and each rare branch ran. A name with 0 must fire in other worlds."""

    @property
    def happenings(self) -> Sequence[RecordedEvent]:
        """The readable events of its history."""

    @property
    def simulated_s(self) -> float:
        """Its duration in simulated seconds."""


@dataclass(frozen=True, slots=True)
class Worlds:
    """The searched worlds. Both functions are module-level, so that other processes can import them."""

    plan_of: Callable[[int], Plan]
    play: Callable[[Plan], PlayedWorld]


_NUMBERS: Final = re.compile(r"0x[0-9a-f]+|\b(?=[a-f-]*[0-9])[0-9a-f-]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)
"""Matches memory addresses, hexadecimal ids and numbers."""


@dataclass(frozen=True, slots=True)
class FoundBroken:
    """A guarantee that did not hold in a simulated run."""

    promise: str
    text: str
    keys: tuple[str, ...] = ()
    at_ns: int | None = None
    """Nanoseconds since the start of the world, or None if it was found at the end."""

    @property
    def mark(self) -> tuple[str, str]:
        """The promise and the description without ids and numbers. Equal marks identify the same failure."""
        text = self.text
        for key in sorted(filter(None, self.keys), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "#", text)
        return self.promise, _NUMBERS.sub("#", text)


@dataclass(frozen=True, slots=True)
class WorldEnd:
    """The result of a world."""

    plan: Plan
    digest: str
    fired: Mapping[str, int]
    simulated_s: float
    cpu_s: float
    broken: tuple[FoundBroken, ...]
    happenings: tuple[RecordedEvent, ...] = ()
    """The readable events. Empty unless requested."""

    @property
    def seed(self) -> int:
        """The seed of its plan."""
        return self.plan.seed

    def fails_like(self, other: WorldEnd) -> bool:
        """Returns whether this world has the first failure of the other world."""
        return any(broken.mark == other.broken[0].mark for broken in self.broken)


RUNS_TO_ITS_END = "A world runs to its end."
"""The promise broken by a world that raises an exception, whose process dies, or that exceeds its time limit."""


def without_end(plan: Plan, text: str, cpu_s: float = 0.0) -> WorldEnd:
    """Returns a WorldEnd for a world that did not finish."""
    return WorldEnd(plan, "", {}, 0.0, cpu_s, (FoundBroken(RUNS_TO_ITS_END, text),))


def broken_of(violation: Any) -> FoundBroken:
    """Returns a judge's violation as data."""
    return FoundBroken(str(violation.promise), str(violation.text), tuple(violation.keys), getattr(violation, "at_ns", None))
