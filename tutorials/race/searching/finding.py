"""Searches simulated runs of many seeds for anomalies of an approach.

For each anomaly, finds the first seed that causes it, and the smallest set of faults that still causes it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rocketmq_broker.testing.exploring import ExploredWorld, RuleBroken
from rocketmq_broker.testing.exploring.drawing import REQUEST
from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.shrinking import shrink
from tutorials.race.entries import find_way
from tutorials.race.searching.world import race
from tutorials.race.way import Way
from tutorials.race.ways import WAYS

_TRIES: Final = 60
"""The maximum number of simulated runs to minimize the faults of one anomaly."""


class Anomaly(Enum):
    """A kind of error in a simulated run. The first three are the names of the corresponding counts in Verdict."""

    MISSING = "missing"
    PHANTOM = "phantom"
    DOUBLED = "doubled"
    TWO_OUTCOMES = "two outcomes"
    """The producer sent COMMIT and ROLLBACK for one transaction. The run ends there, before the databases are compared."""


@dataclass(frozen=True, slots=True)
class FoundAnomaly:
    """An anomaly of an approach, with the first seed that caused it."""

    anomaly: Anomaly
    first_seed: int
    worlds: int
    """The number of simulated runs with the anomaly."""
    enough: tuple[str, ...]
    """The faults of the smallest plan found that still causes the anomaly. Empty if the anomaly needs no fault."""


@dataclass(frozen=True, slots=True)
class SearchedWay:
    """The anomalies of one approach. `worlds` is the number of simulated runs."""

    way: str
    worlds: int
    anomalies: tuple[FoundAnomaly, ...]


def search(ways: Sequence[type[Way]], seeds: Sequence[int], processes: int | None = None) -> Iterator[SearchedWay]:
    """Yields the results of the approaches in order. Uses `processes` processes, by default one per CPU."""
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_searched, [way.name for way in ways], [tuple(seeds)] * len(ways))


def search_here(way: type[Way], seeds: Sequence[int], tries: int = _TRIES) -> SearchedWay:
    """Returns the anomalies of an approach in the simulated runs of these seeds. Runs them in this process."""
    worlds = {seed: ExploredWorld(seed) for seed in seeds}
    found = {seed: anomalies_of(way, world) for seed, world in worlds.items()}
    anomalies = []
    for anomaly in Anomaly:
        having = [seed for seed in seeds if anomaly in found[seed]]
        if having:
            anomalies.append(FoundAnomaly(anomaly, having[0], len(having), _enough(way, anomaly, worlds[having[0]].plan, tries)))
    return SearchedWay(way.name, len(seeds), tuple(anomalies))


def anomalies_of(way: type[Way], world: ExploredWorld) -> frozenset[Anomaly]:
    """Runs an approach in the world, and returns the anomalies of the run."""
    try:
        verdict = race(way, world)
    except RuleBroken:
        return frozenset({Anomaly.TWO_OUTCOMES})
    finally:
        world.end()
    return frozenset(anomaly for anomaly in Anomaly if getattr(verdict, anomaly.value, 0))


def _enough(way: type[Way], anomaly: Anomaly, plan: Plan, tries: int) -> tuple[str, ...]:
    def fails(smaller: Plan) -> bool:
        return anomaly in anomalies_of(way, ExploredWorld(smaller.seed, smaller))

    found = shrink(plan, fails, budget=tries)
    return tuple(f"{event.what} {event.where}" for event in found.plan.events if event.what != REQUEST)


def _searched(name: str, seeds: Sequence[int]) -> SearchedWay:
    return search_here(find_way(WAYS, name), seeds)
