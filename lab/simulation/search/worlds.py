"""The interface of simulations for the search: a function that creates the plan of a seed, and a function that runs a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.plan import Plan

_NUMBERS: Final = re.compile(r"0x[0-9a-f]+|\b(?=[a-f-]*[0-9])[0-9a-f-]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)
"""Matches memory addresses, hexadecimal ids and numbers."""


@dataclass(frozen=True, slots=True)
class FoundBroken:
    """A guarantee that did not hold in a simulated run."""

    promise: str
    text: str
    keys: tuple[str, ...] = ()
    at_ns: int | None = None
    """The time of the violation in nanoseconds since the start of the simulation. None if it was found at the end."""

    @property
    def mark(self) -> tuple[str, str]:
        """The guarantee and the description without ids and numbers.

        Two failures with the same mark count as the same failure.
        """
        text = self.text
        for key in sorted(filter(None, self.keys), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "#", text)
        return self.promise, _NUMBERS.sub("#", text)


@dataclass(frozen=True, slots=True)
class WorldEnd:
    """The result of a simulation."""

    plan: Plan
    digest: str
    fired: Mapping[str, int]
    """The number of times that each kind of fault occurred and each rare branch was executed.

    A name with the number 0 must occur in another simulation.
    """
    simulated_s: float
    broken: tuple[FoundBroken, ...]
    happenings: tuple[RecordedEvent, ...] = ()
    """The readable events. Empty unless requested."""
    cpu_s: float = 0.0

    @property
    def seed(self) -> int:
        """The seed of the simulation's plan."""
        return self.plan.seed

    def fails_like(self, other: WorldEnd) -> bool:
        """Returns True if the first failure of the other simulation is among the failures of this simulation."""
        return any(broken.mark == other.broken[0].mark for broken in self.broken)


RUNS_TO_ITS_END = "A world runs to its end."
"""The guarantee that is violated if a simulation raises an exception, if its process dies, or if it exceeds its time limit."""


def without_end(plan: Plan, text: str, cpu_s: float = 0.0) -> WorldEnd:
    """Returns the result of a simulation that did not finish."""
    return WorldEnd(plan, "", {}, 0.0, (FoundBroken(RUNS_TO_ITS_END, text),), cpu_s=cpu_s)


@dataclass(frozen=True, slots=True)
class Worlds:
    """The functions that create plans and run simulations. They are module-level, so that other processes can import them."""

    plan_of: Callable[[int], Plan]
    play: Callable[[Plan], WorldEnd]
