"""Worlds of the shop, each from its seed: every promise holds in each. `make simulate` plays more."""

from collections import Counter

import pytest

from simulation.fault_kinds import FaultKind
from simulation.plans import plan_of
from simulation.world import play

WORLDS = 100
PARTS = 4


def plans_of_part(part: int) -> list[int]:
    """Seeds whose worlds have no outage of hours: each of those takes as long as ten others."""
    return [
        seed
        for seed in range(1 + part, 1 + WORLDS, PARTS)
        if not any(event.what == FaultKind.OUTAGE for event in plan_of(seed).events)
    ]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_promise_holds_in_each_world(part: int) -> None:
    broken, fired = {}, Counter[str]()
    for seed in plans_of_part(part):
        played = play(plan_of(seed))
        fired.update(played.fired)
        if played.violations:
            broken[seed] = [(violation.promise, violation.text) for violation in played.violations[:3]]
    assert broken == {}
    assert len(fired) > 20


def test_a_plan_gives_the_same_history_again() -> None:
    assert play(plan_of(7)).digest == play(plan_of(7)).digest
