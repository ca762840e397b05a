"""The part of a world that its page shows: what belongs to the broken promise, with the waits and all others between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.testing.simulation.page.connecting import connected_keys
from rocketmq_broker.testing.simulation.page.told import BrokenPromise, ToldHappening, ToldKind, ToldWorld

MAX_SHOWN: Final = 300
_FIRST_SHOWN: Final = 40
"""How many of the first happenings stay if there are too many; the last ones fill the rest."""
_LEADING_UP: Final = 40
"""How many happenings up to a broken promise without a key are taken to matter."""
_CONCERN_ALL: Final = frozenset({ToldKind.FAULT, ToldKind.DEATH, ToldKind.START, ToldKind.VIOLATION})


@dataclass(frozen=True, slots=True)
class ShownHappening:
    """A happening that the page shows, and what it leaves out before."""

    happening: ToldHappening
    waited_ns: int
    """Nanoseconds since the happening that the page shows before it; 0 for the first."""
    skipped: tuple[ToldHappening, ...]
    """The happenings between the two."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The happenings that a page shows, in order."""

    shown: tuple[ShownHappening, ...]
    skipped_after: tuple[ToldHappening, ...]
    """The happenings after the last one that the page shows."""

    @property
    def happenings(self) -> list[ToldHappening]:
        """The happenings that the page shows."""
        return [one.happening for one in self.shown]


def scene_of(world: ToldWorld, broken: BrokenPromise | None) -> Scene:
    """Returns what matters in a world for a promise that broke there, or in the world beside it.

    This is what the promise's keys lead to, and each fault, death, start after the first one, broken promise, and what
    happens to the whole world. If no promise broke, everything matters in a short world.
    """
    happenings = with_violations(world)
    mattering = sorted(_concerning_all(happenings) | _concerning(broken, happenings))
    if len(mattering) > MAX_SHOWN:
        mattering = [*mattering[:_FIRST_SHOWN], *mattering[_FIRST_SHOWN - MAX_SHOWN :]]
    shown: list[ShownHappening] = []
    next_place = 0
    for place in mattering:
        happening = happenings[place]
        waited_ns = happening.at_ns - shown[-1].happening.at_ns if shown else 0
        shown.append(ShownHappening(happening, waited_ns, tuple(happenings[next_place:place])))
        next_place = place + 1
    return Scene(tuple(shown), tuple(happenings[next_place:]))


def with_violations(world: ToldWorld) -> list[ToldHappening]:
    """Returns the happenings with each broken promise at its time, after what happened at the same moment."""
    happenings = [one for one in world.happenings if not (world.violations and one.kind == ToldKind.VIOLATION)]
    happenings += [_as_happening(broken) for broken in world.violations]
    return sorted(happenings, key=lambda happening: happening.at_ns)


def _as_happening(broken: BrokenPromise) -> ToldHappening:
    return ToldHappening(broken.at_ns, "", ToldKind.VIOLATION, f"“{broken.promise.rstrip(' .')}”: {broken.text}", broken.keys)


def _concerning_all(happenings: Sequence[ToldHappening]) -> set[int]:
    started: set[str] = set()
    places = set()
    for place, happening in enumerate(happenings):
        is_first_start = happening.kind == ToldKind.START and happening.process not in started
        if (happening.kind in _CONCERN_ALL or not happening.process) and not is_first_start:
            places.add(place)
        if is_first_start:
            started.add(happening.process)
    return places


def _concerning(broken: BrokenPromise | None, happenings: Sequence[ToldHappening]) -> set[int]:
    if broken is None:
        return set(range(len(happenings))) if len(happenings) <= MAX_SHOWN else set()
    if not broken.keys:
        return set([place for place, one in enumerate(happenings) if one.at_ns <= broken.at_ns][-_LEADING_UP:])
    names = connected_keys(happenings, broken.keys)
    return {place for place, happening in enumerate(happenings) if not names.isdisjoint(happening.keys)}
