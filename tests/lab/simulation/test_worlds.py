"""Plays worlds of the shop, each from a seed. Each world keeps every promise. `make simulate` plays more worlds."""

from collections import Counter
from collections.abc import Callable

import pytest

from lab.simulation.plans import plan_of
from lab.simulation.world import play
from tests.played_worlds import WORLDS_PLAYED

WORLDS = 200
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_every_promise_holds_in_each_world(part: int, record_property: Callable[[str, object], None]) -> None:
    seeds = range(1 + part, 1 + WORLDS, PARTS)
    broken, fired = {}, Counter[str]()
    for seed in seeds:
        played = play(plan_of(seed))
        fired.update(played.fired)
        if played.broken:
            broken[seed] = [(violation.promise, violation.text) for violation in played.broken[:3]]
    record_property(WORLDS_PLAYED, len(seeds))
    assert broken == {}
    assert len(+fired) > 20


def test_a_plan_gives_the_same_history_again() -> None:
    assert play(plan_of(7)).digest == play(plan_of(7)).digest
