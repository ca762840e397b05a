"""Runs the explored test of the shop, each world from a seed. `make simulate` plays more worlds."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from lab.simulation.plans import plan_of
from lab.simulation.world import every_promise_holds, play
from rocketmq_broker.testing.exploring.explore import worlds_of
from rocketmq_broker.testing.exploring.search.command import SearchCommand
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


def test_worlds_do_not_depend_on_the_seed_of_hashes(tmp_path: Path) -> None:
    """The third world saves positions, which once checked results in the order of a set."""
    command = SearchCommand(worlds_of(every_promise_holds), Console(), tmp_path, "v1", "simulate")
    assert command.check_digests(range(1, 9)) == 0
