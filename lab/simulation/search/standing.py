"""Saves the simulated seeds in a file, so that the next run can continue from there."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from lab.simulation.search.kept_lines import KeptLines
from lab.simulation.search.worlds import WorldEnd

PART: Final = 25
"""The number of seeds per line of the file. After an interruption, each process repeats fewer seeds than this."""


class FailedSeed(msgspec.Struct, frozen=True):
    """A seed whose simulation violated a guarantee, with the first violated guarantee."""

    seed: int
    promise: str
    text: str


class PlayedPart(msgspec.Struct, frozen=True):
    """A range of seeds that were simulated, with the sums of their results."""

    first: int
    count: int
    digest: str
    """A digest of the digests of all simulations, in the order of the seeds."""
    fired: dict[str, int]
    simulated_s: float
    cpu_s: float
    failed: list[FailedSeed] = []

    @property
    def seeds(self) -> range:
        """The seeds of the part."""
        return range(self.first, self.first + self.count)


class Totals:
    """The sums over all parts."""

    def __init__(self, parts: Sequence[PlayedPart]) -> None:
        """Adds up the figures of the parts."""
        self.worlds = sum(part.count for part in parts)
        self.simulated_s = sum(part.simulated_s for part in parts)
        self.cpu_s = sum(part.cpu_s for part in parts)
        self.failed = sorted((failed for part in parts for failed in part.failed), key=lambda failed: failed.seed)
        self.fired: Counter[str] = Counter()
        for part in parts:
            self.fired.update(part.fired)


class Standing:
    """The parts that were simulated with one version of the code. Each line of the file is a part.

    The seeds of an incomplete line are simulated again.
    """

    def __init__(self, file: Path) -> None:
        """Reads the parts of earlier runs."""
        self._lines = KeptLines(file, PlayedPart)
        self.parts = self._lines.read.copy()

    def missing(self, wanted: range) -> list[range]:
        """Returns the wanted seeds that were not simulated, divided into parts."""
        played = {seed for part in self.parts for seed in part.seeds}
        left = [seed for seed in wanted if seed not in played]
        return [_range(list(seeds)) for _, seeds in groupby(enumerate(left), key=lambda it: (it[1] // PART, it[1] - it[0]))]

    def add(self, ends: Sequence[WorldEnd]) -> PlayedPart:
        """Adds a part with these results of simulations, and returns the part."""
        part = _part(sorted(ends, key=lambda end: end.seed))
        self._lines.append(part)
        self.parts.append(part)
        return part

    @property
    def totals(self) -> Totals:
        """The sums of all parts."""
        return Totals(self.parts)


class OpenParts:
    """Collects the results of simulations, in any order, until a part is complete."""

    def __init__(self, parts: Sequence[range]) -> None:
        """Creates empty parts. `parts` must not overlap."""
        self._part_of = {seed: part for part in parts for seed in part}
        self._ends: dict[range, list[WorldEnd]] = {}

    def seeds(self) -> Iterator[int]:
        """Yields all seeds, part by part."""
        yield from self._part_of

    def add(self, end: WorldEnd) -> list[WorldEnd] | None:
        """Adds a result. Returns the results of its part if the part is now complete, otherwise None."""
        part = self._part_of[end.seed]
        ends = self._ends.setdefault(part, [])
        ends.append(end)
        return self._ends.pop(part) if len(ends) == len(part) else None


def _range(numbered: Sequence[tuple[int, int]]) -> range:
    return range(numbered[0][1], numbered[-1][1] + 1)


def _part(ends: Sequence[WorldEnd]) -> PlayedPart:
    fired: Counter[str] = Counter()
    for end in ends:
        fired.update(end.fired)
    return PlayedPart(
        first=ends[0].seed,
        count=len(ends),
        digest=hashlib.sha256("\n".join(end.digest for end in ends).encode()).hexdigest()[:16],
        fired=dict(sorted(fired.items())),
        simulated_s=round(sum(end.simulated_s for end in ends), 3),
        cpu_s=round(sum(end.cpu_s for end in ends), 3),
        failed=[FailedSeed(end.seed, end.broken[0].promise, end.broken[0].text) for end in ends if end.broken],
    )
