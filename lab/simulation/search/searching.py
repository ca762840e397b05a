"""Searches for failures by playing the worlds of many seeds until one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from lab.simulation.search.processes import PlayingProcesses
from lab.simulation.search.standing import OpenParts, Standing
from lab.simulation.search.worlds import WorldEnd

ENOUGH_TO_FIRE: Final = 1000
"""Number of worlds after which each kind of fault must have fired."""


def play_missing(
    processes: PlayingProcesses, standing: Standing, wanted: range, *, goes_on: bool, on_end: Callable[[WorldEnd], None]
) -> list[WorldEnd]:
    """Plays the wanted seeds that were not played before, keeps each finished part, and returns the failed worlds.

    Stops at the first failed world unless `goes_on`. Its part is not kept, so that the next run plays it again.
    """
    open_parts = OpenParts(standing.missing(wanted))
    failed = []
    for end in processes.play_all(open_parts.seeds()):
        on_end(end)
        if end.broken:
            failed.append(end)
            if not goes_on:
                break
        if (ends := open_parts.add(end)) is not None:
            standing.add(ends)
    return failed


def never_fired(fired: Mapping[str, int], worlds: int, expected: Iterable[str]) -> list[str]:
    """Returns the names that should have fired but never did. Returns nothing after too few worlds.

    `expected` are the kinds of faults. A rare branch is expected if a world has reported it with a count of 0.
    """
    if worlds < ENOUGH_TO_FIRE:
        return []
    return sorted(name for name in {*map(str, expected), *fired} if not fired.get(name))
