"""Searches seeds for a simulation that finds a planted bug."""

from collections.abc import Callable, Iterable, Sequence

from rocketmq_broker.testing.exploring.search.worlds import FoundBroken
from tests.lab.planted.planted_bug import PlantedBug


def first_found(
    bug: PlantedBug, seeds: Iterable[int], violations_of: Callable[[int], Sequence[FoundBroken]]
) -> tuple[int, str] | None:
    """Returns the first seed that violates a guarantee with the bug and none without it, and the guarantee.

    `violations_of` runs the simulation of a seed. Returns None if no seed finds the bug.
    """
    for seed in seeds:
        with bug.planted():
            violations = violations_of(seed)
        if violations and not violations_of(seed):
            return seed, violations[0].promise
    return None
