"""Saves the results of a search for planted bugs in a file, so that the next search can continue from there."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lab.simulation.search.kept_lines import KeptLines


class HuntedWorld(msgspec.Struct, frozen=True, tag="world"):
    """The result of one simulation, with a planted bug or without one."""

    bug: str | None
    """The name of the bug, or None for the simulation without a bug."""
    seed: int
    cpu_s: float
    """The CPU time of the simulation in seconds."""
    promise: str | None = None
    """The guarantee that the simulation violated first, or None."""


class ShrunkBug(msgspec.Struct, frozen=True, tag="shrunk"):
    """The smallest simulation found that shows a planted bug."""

    bug: str
    seed: int
    """The seed of the shrunk simulation."""
    events: int
    """The number of events in its plan: customers' actions and faults."""
    worlds: int
    """The number of simulations that were run to shrink it."""


class KeptHunt:
    """The kept results of a search for planted bugs."""

    def __init__(self, file: Path) -> None:
        """Reads the results of earlier searches from the file."""
        self._lines: KeptLines[HuntedWorld | ShrunkBug] = KeptLines(file, HuntedWorld | ShrunkBug)  # type: ignore[arg-type]
        self._whole: dict[int, bool] = {}
        self._worlds: dict[str, dict[int, HuntedWorld]] = {}
        self._shrunk: dict[str, ShrunkBug] = {}
        for line in self._lines.read:
            self._learn(line)

    def add(self, result: HuntedWorld | ShrunkBug) -> None:
        """Adds a result to the file."""
        self._lines.append(result)
        self._learn(result)

    def is_whole(self, seed: int) -> bool | None:
        """Returns True if the seed violates no guarantee without a bug, and False if it violates one.

        Returns None if the seed was not simulated without a bug.
        """
        return self._whole.get(seed)

    def has_played(self, bug: str, seed: int) -> bool:
        """Returns True if the seed was simulated with this bug."""
        return seed in self._worlds.get(bug, {})

    def worlds(self, bug: str) -> list[HuntedWorld]:
        """Returns the simulations with a bug, in order of seeds, up to the first one that found it."""
        played = [world for _, world in sorted(self._worlds.get(bug, {}).items())]
        first = next((number for number, world in enumerate(played, 1) if world.promise is not None), len(played))
        return played[:first]

    def found(self, bug: str) -> HuntedWorld | None:
        """Returns the first simulation that found a bug, or None."""
        return next((world for world in self.worlds(bug) if world.promise is not None), None)

    def shrunk(self, bug: str) -> ShrunkBug | None:
        """Returns the smallest simulation that shows a bug, or None."""
        return self._shrunk.get(bug)

    def _learn(self, result: HuntedWorld | ShrunkBug) -> None:
        match result:
            case ShrunkBug():
                self._shrunk[result.bug] = result
            case HuntedWorld(bug=None):
                self._whole[result.seed] = result.promise is None
            case HuntedWorld(bug=str() as bug):
                self._worlds.setdefault(bug, {})[result.seed] = result
