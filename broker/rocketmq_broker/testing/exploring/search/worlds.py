"""The interface of worlds (simulated runs) for the search: how a plan is drawn and run, and the result of a run."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.testing.simulation.history import RecordedEvent
from rocketmq_broker.testing.simulation.plan import Plan, Setting

_NUMBERS: Final = re.compile(r"0x[0-9a-f]+|\b(?=[a-f-]*[0-9])[0-9a-f-]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)
"""Matches memory addresses, hexadecimal ids and numbers."""


@dataclass(frozen=True, slots=True)
class FoundBroken:
    """A guarantee that did not hold in a world, or an error of its test."""

    promise: str
    """The guarantee; empty for an error of the test."""
    text: str
    keys: tuple[str, ...] = ()
    at_ns: int | None = None
    """The time of the violation in nanoseconds since the start of the world. None if it was found at the end."""
    raised_at: tuple[str, ...] = ()
    """The types of the error and its causes, with the lines that raised them."""

    @property
    def mark(self) -> tuple[str, ...]:
        """The lines that raised the error, or the guarantee and the description without ids and numbers.

        Two failures with the same mark count as the same failure.
        """
        if self.raised_at:
            return self.raised_at
        text = self.text
        for key in sorted(filter(None, self.keys), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "#", text)
        return self.promise, _NUMBERS.sub("#", text)

    def __str__(self) -> str:
        """Returns the guarantee and the description."""
        return f"{self.promise} {self.text}" if self.promise else self.text


@dataclass(frozen=True, slots=True)
class WorldEnd:
    """The result of a world."""

    plan: Plan
    digest: str
    fired: Mapping[str, int]
    """The number of times that each kind of fault occurred and each rare branch was executed.

    A name with the number 0 must occur in another world.
    """
    simulated_s: float
    broken: tuple[FoundBroken, ...]
    happenings: tuple[RecordedEvent, ...] = ()
    """The readable events. Empty unless requested."""
    cpu_s: float = 0.0
    error: BaseException | None = None
    """The error of the test. None in another process."""

    @property
    def seed(self) -> int:
        """The seed of the world's plan."""
        return self.plan.seed

    def fails_like(self, other: "WorldEnd") -> bool:
        """Returns True if the first failure of the other world is among the failures of this world."""
        return any(broken.mark == other.broken[0].mark for broken in self.broken)


RUNS_TO_ITS_END: Final = "A world runs to its end."
"""The guarantee that is violated if a world raises an exception, if its process dies, or if it exceeds its time limit."""


PlayWorld = Callable[[Plan | int, bool], WorldEnd]
"""A function that runs the world of a plan or a seed. Its second argument is whether to return all readable events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldKind:
    """What the search must know of a test's worlds: their plans, faults, settings and lanes."""

    draw: Callable[[int], Plan] | None = None
    """A function that draws the plan of a seed. None if `ExploredWorld.run` draws it for the test's programs."""
    kinds: Collection[str]
    """The kinds of events that are faults. All others are requests of customers."""
    simplest: Mapping[str, Setting] = field(default_factory=dict)
    """The settings to which a failed plan is shrunk."""
    lanes: Sequence[str]
    """The lanes of a page from left to right, by the longest prefix of their names. Links are last."""


@dataclass(frozen=True, slots=True)
class Worlds:
    """The worlds of one test. Its functions are module-level, or partial, so that other processes can import them."""

    name: str
    """The name of the test."""
    kind: WorldKind
    plan_of: Callable[[int], Plan]
    """A function that returns the plan of a seed, for a world whose process died."""
    play: PlayWorld

    def file_name(self, seed: int) -> str:
        """Returns the name, without a suffix, of the files about the world of a seed."""
        return f"{self.name}-{seed}"


def failed_among(ends: Iterable[WorldEnd], keep: Callable[[WorldEnd], object], *, goes_on: bool = False) -> list[WorldEnd]:
    """Passes each result to `keep`, and returns the failed ones.

    Stops at the first failure unless `goes_on` is True. This failure is not kept, so that the next run repeats it.
    """
    failed = []
    for end in ends:
        if end.broken:
            failed.append(end)
            if not goes_on:
                break
        keep(end)
    return failed
