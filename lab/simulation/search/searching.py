"""Searches for failures by running the simulations of many seeds until one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from lab.simulation.search.processes import PlayingProcesses
from lab.simulation.search.standing import OpenParts, Standing
from lab.simulation.search.worlds import WorldEnd

ENOUGH_TO_FIRE: Final = 1000
"""The number of simulations after which each kind of fault must have occurred."""


def play_missing(
    processes: PlayingProcesses, standing: Standing, wanted: range, *, goes_on: bool, on_end: Callable[[WorldEnd], None]
) -> list[WorldEnd]:
    """Runs a simulation for each seed in `wanted` that has no result yet. Returns the failed ones.

    Saves the results of each range of seeds when the range is complete. Stops at the first failure unless `goes_on` is True. The
    range of this failure is not saved, so that the next run repeats it.
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
    """Returns the names that should have occurred but never did.

    Returns an empty list if too few simulations were run. `expected` are the kinds of faults. A rare branch is also
    expected if a simulation has reported it with a count of 0.
    """
    if worlds < ENOUGH_TO_FIRE:
        return []
    return sorted(name for name in {*map(str, expected), *fired} if not fired.get(name))
