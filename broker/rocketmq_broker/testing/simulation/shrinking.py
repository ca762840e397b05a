"""Shrinks a failing plan to a smaller one that also fails, with fewer events, simpler settings and shorter times.

Events are removed by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input"): first in
large parts, then in smaller ones, until no single event can be removed. All passes are repeated until none of them shrinks
the plan further.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, Setting

_NO_SETTINGS: Final[Mapping[str, Setting]] = {}


@dataclass(frozen=True, slots=True)
class ShrunkPlan:
    """The result of shrinking a failing plan."""

    plan: Plan
    tried: int
    """The number of tried plans."""
    is_repeated: bool
    """Whether the plan failed again when it was repeated. If not, it is unchanged."""


def shrink(
    plan: Plan,
    fails: Callable[[Plan], bool],
    *,
    budget: int,
    seconds: float = math.inf,
    simplest: Mapping[str, Setting] = _NO_SETTINGS,
) -> ShrunkPlan:
    """Returns the smallest failing plan found, or the plan itself if it does not fail again.

    Calls `fails` at least once, at most `budget` times, and not after `seconds` of real time. Without a time limit, the same
    arguments always give the same result. If the budget suffices, the returned plan no longer fails if any one of its events
    is removed. `simplest` contains simpler settings to try in the plan's shape.
    """
    shrinking = _Shrinking(plan, fails, budget, time.monotonic() + seconds)
    is_repeated = shrinking.fails_as_given()
    with suppress(_BudgetSpent):
        if is_repeated:
            shrinking.repeat_all_passes(simplest)
    return ShrunkPlan(shrinking.smallest, shrinking.tried, is_repeated)


def without_last_fault(plan: Plan, is_fault: Callable[[PlannedEvent], bool]) -> Plan | None:
    """Returns the plan without its last fault, to compare both runs. Returns None if it has no fault."""
    last = max((number for number, event in enumerate(plan.events) if is_fault(event)), default=None)
    return None if last is None else plan.with_events((*plan.events[:last], *plan.events[last + 1 :]))


class _BudgetSpent(Exception):
    """Raised if the maximum number of plans was tried, or the time is over."""


class _Shrinking:
    def __init__(
        self,
        plan: Plan,
        fails: Callable[[Plan], bool],
        budget: int,
        end_s: float,
    ) -> None:
        self.smallest = plan
        self._fails = fails
        self._budget = budget
        self._end_s = end_s
        self._known: set[str] = set()
        """The JSON of the plans tried so far."""
        self.tried = 0

    def fails_as_given(self) -> bool:
        return self._does_fail(self.smallest)

    def repeat_all_passes(self, simplest: Mapping[str, Setting]) -> None:
        before = None
        while self.smallest != before:
            before = self.smallest
            self._take_out_events()
            self._end_earlier()
            self._simplify_shape(simplest)
            self._shorten_events()
            self._close_gaps()
            self._shorten_lists()

    def _take_out_events(self) -> None:
        for name in sorted({event.what for event in self.smallest.events}):
            self._keep(event for event in self.smallest.events if event.what != name)
        for name in sorted({event.where for event in self.smallest.events}):
            self._keep(event for event in self.smallest.events if event.where != name)
        part = max(1, len(self.smallest.events) // 2)
        while self._take_out_parts(part) or part > 1:
            part = max(1, part // 2)

    def _take_out_parts(self, part: int) -> bool:
        """Tries to remove each part of `part` events, starting with the last part. Returns whether any part was removed."""
        count = len(self.smallest.events)
        end = count
        while end > 0:
            events = self.smallest.events
            begin = max(0, end - part)
            self._keep((*events[:begin], *events[end:]))
            end = begin
        return len(self.smallest.events) < count

    def _end_earlier(self) -> None:
        last_s = self.smallest.events[-1].at_s if self.smallest.events else 0.0
        self._lower(self.smallest.ends_s - last_s, lambda after_s: replace(self.smallest, ends_s=_rounded(last_s + after_s)))

    def _simplify_shape(self, simplest: Mapping[str, Setting]) -> None:
        for name in sorted(self.smallest.shape.keys() & simplest.keys()):
            self._try(replace(self.smallest, shape={**self.smallest.shape, name: simplest[name]}))

    def _shorten_events(self) -> None:
        for number in range(len(self.smallest.events)):
            self._lower(self.smallest.events[number].for_s, partial(self._with_length, number))

    def _close_gaps(self) -> None:
        """Tries to move each event, with all later events, closer to the previous event."""
        for number in range(len(self.smallest.events)):
            before_s = self.smallest.events[number - 1].at_s if number else 0.0
            self._lower(self.smallest.events[number].at_s - before_s, partial(self._with_gap, number))

    def _shorten_lists(self) -> None:
        for number in range(len(self.smallest.events)):
            parameters = self.smallest.events[number].parameters
            for name in sorted(parameters):
                if isinstance(parameters[name], list) and len(parameters[name]) > 1:
                    self._try(self._with(number, parameters={**parameters, name: parameters[name][:1]}))

    def _lower(self, value: float, plan_with: Callable[[float], Plan]) -> None:
        """Tries lower values, lowest first. If the plan fails with one of them, tries even lower values."""
        lowered: float | None = value
        while lowered is not None:
            value, lowered = lowered, None
            for lower in _lower_values(value):
                if self._try(plan_with(lower)):
                    lowered = lower
                    break

    def _with(self, number: int, **changed: object) -> Plan:
        events = self.smallest.events
        return replace(self.smallest, events=(*events[:number], replace(events[number], **changed), *events[number + 1 :]))

    def _with_length(self, number: int, for_s: float) -> Plan:
        return self._with(number, for_s=for_s)

    def _with_gap(self, number: int, gap_s: float) -> Plan:
        events = self.smallest.events
        before_s = events[number - 1].at_s if number else 0.0
        earlier_s = events[number].at_s - (before_s + gap_s)
        moved = [replace(event, at_s=max(before_s, _rounded(event.at_s - earlier_s))) for event in events[number:]]
        return self.smallest.with_events((*events[:number], *moved))

    def _keep(self, events: Iterable[PlannedEvent]) -> None:
        self._try(replace(self.smallest, events=tuple(events)))

    def _try(self, plan: Plan) -> bool:
        """Tries a plan, unless it was already tried. Returns whether it fails, and keeps a failing plan. Raises _BudgetSpent."""
        if plan.written() in self._known:
            return False
        if self.tried >= self._budget or time.monotonic() > self._end_s:
            raise _BudgetSpent
        return self._does_fail(plan)

    def _does_fail(self, plan: Plan) -> bool:
        self._known.add(plan.written())
        self.tried += 1
        is_failing = self._fails(plan)
        if is_failing:
            self.smallest = plan
        return is_failing


def _lower_values(value: float) -> Iterator[float]:
    """Yields lower values: 0, 1, half of the value rounded down, and other rounded values."""
    rounder = [0.0, 1.0, float(value // 2)] if value > 1 else [0.0]
    if value > 0:
        leading = 10.0 ** math.floor(math.log10(value))
        rounder += [_rounded(math.floor(value / unit) * unit) for unit in (leading, 1.0, 0.1) if unit <= value]
    tried = {value}
    for lower in rounder:
        if 0 <= lower < value and lower not in tried:
            tried.add(lower)
            yield lower


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
