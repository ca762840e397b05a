"""Selects the events that a page shows: those related to the violated promise, with the waits and skipped events in between."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.testing.simulation.page.connecting import connected_keys
from rocketmq_broker.testing.simulation.page.world_report import BrokenPromise, ReportedEvent, ReportedKind, WorldReport

MAX_SHOWN: Final = 300
_FIRST_SHOWN: Final = 40
"""The number of first events to keep if a page has too many events. The last events fill the rest of the page."""
_LEADING_UP: Final = 40
"""The number of events shown before a broken promise without keys."""
_CONCERN_ALL: Final = frozenset({ReportedKind.FAULT, ReportedKind.DEATH, ReportedKind.START, ReportedKind.VIOLATION})


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """A shown event, and the events skipped before it."""

    happening: ReportedEvent
    waited_ns: int
    """The nanoseconds since the previous shown event; 0 for the first one."""
    skipped: tuple[ReportedEvent, ...]
    """The events skipped since the previous shown event."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The events of a page, in order."""

    shown: tuple[ShownEvent, ...]
    skipped_after: tuple[ReportedEvent, ...]
    """The events skipped after the last shown one."""

    @property
    def happenings(self) -> list[ReportedEvent]:
        """The shown events."""
        return [one.happening for one in self.shown]


def scene_of(world: WorldReport, broken: BrokenPromise | None) -> Scene:
    """Returns the events related to a broken promise of this simulated run, or of the run that it is compared with.

    These are the events connected with the promise's keys, and all faults, deaths, restarts, broken promises and events of
    the whole world. If no promise broke, all events of a short world are returned.
    """
    happenings = with_violations(world)
    mattering = sorted(_concerning_all(happenings) | _concerning(broken, happenings))
    if len(mattering) > MAX_SHOWN:
        mattering = [*mattering[:_FIRST_SHOWN], *mattering[_FIRST_SHOWN - MAX_SHOWN :]]
    shown: list[ShownEvent] = []
    next_place = 0
    for place in mattering:
        happening = happenings[place]
        waited_ns = happening.at_ns - shown[-1].happening.at_ns if shown else 0
        shown.append(ShownEvent(happening, waited_ns, tuple(happenings[next_place:place])))
        next_place = place + 1
    return Scene(tuple(shown), tuple(happenings[next_place:]))


def with_violations(world: WorldReport) -> list[ReportedEvent]:
    """Returns the events, with each broken promise inserted at its time, after other events of the same time."""
    happenings = [one for one in world.happenings if not (world.violations and one.kind == ReportedKind.VIOLATION)]
    happenings += [_as_happening(broken) for broken in world.violations]
    return sorted(happenings, key=lambda happening: happening.at_ns)


def _as_happening(broken: BrokenPromise) -> ReportedEvent:
    return ReportedEvent(broken.at_ns, "", ReportedKind.VIOLATION, f"“{broken.promise.rstrip(' .')}”: {broken.text}", broken.keys)


def _concerning_all(happenings: Sequence[ReportedEvent]) -> set[int]:
    started: set[str] = set()
    places = set()
    for place, happening in enumerate(happenings):
        is_first_start = happening.kind == ReportedKind.START and happening.process not in started
        if (happening.kind in _CONCERN_ALL or not happening.process) and not is_first_start:
            places.add(place)
        if is_first_start:
            started.add(happening.process)
    return places


def _concerning(broken: BrokenPromise | None, happenings: Sequence[ReportedEvent]) -> set[int]:
    if broken is None:
        return set(range(len(happenings))) if len(happenings) <= MAX_SHOWN else set()
    if not broken.keys:
        return set([place for place, one in enumerate(happenings) if one.at_ns <= broken.at_ns][-_LEADING_UP:])
    names = connected_keys(happenings, broken.keys)
    return {place for place, happening in enumerate(happenings) if not names.isdisjoint(happening.keys)}
