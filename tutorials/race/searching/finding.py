"""Searches simulated runs of many seeds for anomalies of an approach.

For each anomaly, finds the first seed that causes it, and the smallest set of faults that still causes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rocketmq_broker.testing.simulation.plan import Plan
from rocketmq_broker.testing.simulation.shrinking import shrink
from tutorials.race.entries import find_way
from tutorials.race.judge import Verdict
from tutorials.race.searching.drawing import PLACE, plan_of
from tutorials.race.searching.world import play
from tutorials.race.way import Way
from tutorials.race.ways import WAYS

_TRIES: Final = 60
"""The maximum number of simulated runs to minimize the faults of one anomaly."""


class Anomaly(Enum):
    """A kind of error in the databases after a simulated run. The value is the name of the corresponding count in Verdict."""

    MISSING = "missing"
    PHANTOM = "phantom"
    DOUBLED = "doubled"

    def is_in(self, verdict: Verdict) -> bool:
        """Returns True if the verdict has this anomaly."""
        return bool(getattr(verdict, self.value))


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
    with ProcessPoolExecutor(processes, initializer=_be_silent) as pool:
        yield from pool.map(_searched, [way.name for way in ways], [tuple(seeds)] * len(ways))


def search_here(way: type[Way], seeds: Sequence[int], tries: int = _TRIES) -> SearchedWay:
    """Returns the anomalies of an approach in the simulated runs of these seeds. Runs them in this process."""
    verdicts = {seed: play(way, plan_of(seed)) for seed in seeds}
    anomalies = []
    for anomaly in Anomaly:
        having = [seed for seed, verdict in verdicts.items() if anomaly.is_in(verdict)]
        if having:
            anomalies.append(FoundAnomaly(anomaly, having[0], len(having), _enough(way, anomaly, plan_of(having[0]), tries)))
    return SearchedWay(way.name, len(verdicts), tuple(anomalies))


def _enough(way: type[Way], anomaly: Anomaly, plan: Plan, tries: int) -> tuple[str, ...]:
    def fails(smaller: Plan) -> bool:
        return anomaly.is_in(play(way, smaller))

    smallest = shrink(plan, fails, budget=tries, simplest={})
    return tuple(f"{event.what} {event.where}" for event in smallest.events if event.what != PLACE)


def _searched(name: str, seeds: Sequence[int]) -> SearchedWay:
    return search_here(find_way(WAYS, name), seeds)


def _be_silent() -> None:
    """Suppresses all logs, because the faults cause expected errors."""
    logging.disable(logging.CRITICAL)
