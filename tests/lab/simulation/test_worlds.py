"""Runs the explored test of the shop, each world from a seed. `make simulate` plays more worlds."""

from collections.abc import Callable

import pytest

from lab.simulation.plans import plan_of
from lab.simulation.world import every_promise_holds, play
from tests.played_worlds import WORLDS_PLAYED


@pytest.mark.timeout(1500)
def test_every_promise_holds_in_each_world(
    record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    every_promise_holds()
    passed, fired, *_ = capsys.readouterr().out.splitlines()
    record_property(WORLDS_PLAYED, int(passed.split()[0]))
    assert passed.startswith("200 worlds passed")
    assert len(fired.split(", ")) > 20


def test_a_plan_gives_the_same_history_again() -> None:
    assert play(plan_of(7)).digest == play(plan_of(7)).digest
