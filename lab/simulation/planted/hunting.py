"""Searches for planted bugs: runs simulations with each bug until one violates a guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from lab.simulation.planted.all_planted import planted
from lab.simulation.planted.kept import HuntedWorld, KeptHunt, ShrunkBug
from lab.simulation.search.worlds import WorldEnd
from lab.simulation.shapes import SIMPLEST
from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.shrinking import shrink

PlayPlan = Callable[[Plan | int], WorldEnd]
"""A function that runs a plan, or the plan of a seed. The function never raises: an error counts as a violated guarantee."""

SHRINKS_AFTER: Final = 150
"""The number of seeds after which the found failures are shrunk.

Failed simulations take long, so shrinking costs more than the search.
"""


class HuntWatcher(Protocol):
    """The interface of an object that is notified of the progress of a search."""

    def has_played(self, seed: int, left: Sequence[str]) -> None:
        """Called after a seed was simulated. `left` are the bugs that have not been found."""

    def has_found(self, world: HuntedWorld) -> None:
        """Called after a simulation has found a bug."""

    def has_shrunk(self, bug: ShrunkBug) -> None:
        """Called after a simulation that found a bug was shrunk."""


def hunt(names: Sequence[str], seeds: Iterable[int], play: PlayPlan, kept: KeptHunt, *, tries: int, watcher: HuntWatcher) -> None:
    """Simulates each seed once with each bug that has not been found, and saves each result immediately.

    Skips simulations whose results were kept, and seeds that violate a guarantee without a bug. Shrinks the first failure of each
    bug in at most `tries` simulations.
    """
    for number, seed in enumerate(seeds, 1):
        left = _left(names, kept)
        if not left:
            break
        if not _is_whole(seed, play, kept):
            continue
        for name in left:
            if not kept.has_played(name, seed) and (world := _played(name, seed, play, kept)).promise is not None:
                watcher.has_found(world)
        watcher.has_played(seed, _left(names, kept))
        if number % SHRINKS_AFTER == 0:
            _shrink_found(names, play, kept, tries, watcher)
    _shrink_found(names, play, kept, tries, watcher)


def _left(names: Iterable[str], kept: KeptHunt) -> list[str]:
    return [name for name in names if kept.found(name) is None]


def _is_whole(seed: int, play: PlayPlan, kept: KeptHunt) -> bool:
    if (is_whole := kept.is_whole(seed)) is None:
        end = play(seed)
        kept.add(_hunted(None, end))
        is_whole = not end.broken
    return is_whole


def _played(name: str, seed: int, play: PlayPlan, kept: KeptHunt) -> HuntedWorld:
    with planted(name):
        world = _hunted(name, play(seed))
    kept.add(world)
    return world


def _hunted(name: str | None, end: WorldEnd) -> HuntedWorld:
    return HuntedWorld(name, end.seed, round(end.cpu_s, 3), end.broken[0].promise if end.broken else None)


def _shrink_found(names: Iterable[str], play: PlayPlan, kept: KeptHunt, tries: int, watcher: HuntWatcher) -> None:
    for name in names:
        found = kept.found(name) if kept.shrunk(name) is None else None
        if found is not None and (shrunk := _shrunk(name, found.seed, play, tries)) is not None:
            kept.add(shrunk)
            watcher.has_shrunk(shrunk)


def _shrunk(name: str, seed: int, play: PlayPlan, tries: int) -> ShrunkBug | None:
    """Returns the smallest simulation that shows the bug, or None if the failure cannot be repeated."""
    with planted(name):
        failed = play(seed)
        if not failed.broken:
            return None
        found = shrink(failed.plan, lambda plan: play(plan).fails_like(failed), budget=tries, simplest=SIMPLEST)
    return ShrunkBug(name, seed, len(found.plan.events), found.tried) if found.is_repeated else None
