"""The search: what the worlds of many seeds do to a way, the first seed of each harm, and the faults that are enough."""

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
"""Worlds that are played to find the faults that are enough."""


class Harm(Enum):
    """What a way can do wrong, by the name of the verdict's count."""

    MISSING = "missing"
    PHANTOM = "phantom"
    DOUBLED = "doubled"

    def is_in(self, verdict: Verdict) -> bool:
        """Returns whether the judge found it."""
        return bool(getattr(verdict, self.value))


@dataclass(frozen=True, slots=True)
class FoundHarm:
    """A harm that worlds brought about."""

    harm: Harm
    first_seed: int
    worlds: int
    """How many worlds did."""
    enough: tuple[str, ...]
    """The faults of the smallest plan that was found; none if the way needs no fault."""


@dataclass(frozen=True, slots=True)
class SearchedWay:
    """What the search found of a way."""

    way: str
    worlds: int
    harms: tuple[FoundHarm, ...]


def search(ways: Sequence[type[Way]], seeds: Sequence[int], processes: int | None = None) -> Iterator[SearchedWay]:
    """Yields what is found of each way, in their order. Plays in that many processes, as many as processors if None."""
    with ProcessPoolExecutor(processes, initializer=_be_silent) as pool:
        yield from pool.map(_searched, [way.name for way in ways], [tuple(seeds)] * len(ways))


def search_here(way: type[Way], seeds: Sequence[int], tries: int = _TRIES) -> SearchedWay:
    """Returns what the worlds of these seeds find of a way."""
    verdicts = {seed: play(way, plan_of(seed)) for seed in seeds}
    harms = []
    for harm in Harm:
        having = [seed for seed, verdict in verdicts.items() if harm.is_in(verdict)]
        if having:
            harms.append(FoundHarm(harm, having[0], len(having), _enough(way, harm, plan_of(having[0]), tries)))
    return SearchedWay(way.name, len(verdicts), tuple(harms))


def _enough(way: type[Way], harm: Harm, plan: Plan, tries: int) -> tuple[str, ...]:
    def fails(smaller: Plan) -> bool:
        return harm.is_in(play(way, smaller))

    smallest = shrink(plan, fails, budget=tries, simplest={})
    return tuple(f"{event.what} {event.where}" for event in smallest.events if event.what != PLACE)


def _searched(name: str, seeds: Sequence[int]) -> SearchedWay:
    return search_here(find_way(WAYS, name), seeds)


def _be_silent() -> None:
    """Faults are the normal state here."""
    logging.disable(logging.CRITICAL)
