"""A simulated world finds each planted bug: it breaks a promise with the bug, and keeps every promise without it.

After a change of the plans, `pytest -p tests.lab.planted.plugin tests/lab/planted --hunt 1000` searches for the seeds that are no
longer right. A failed test then shows the seed and the promise that belong into the bug's description.
"""

import pytest

from lab.simulation import world
from lab.simulation.plans import plan_of
from tests.lab.planted.all_planted import PLANTED
from tests.lab.planted.finding import first_found
from tests.lab.planted.planted_bug import PlantedBug

PATIENCE_S = world.LOOKS_S[:5]
"""The pauses in seconds between checks, 18 minutes in all. With a bug, most worlds never settle."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends each world after eighteen minutes without faults instead of four hours. A world that needs more finds no bug."""
    monkeypatch.setattr(world, "LOOKS_S", PATIENCE_S)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the test for each bug with a seed, and in a hunt for each bug."""
    hunted = metafunc.config.getoption("--hunt", 0)
    bugs = {name: bug for name, bug in PLANTED.items() if hunted or bug.seed is not None}
    metafunc.parametrize("bug", bugs.values(), ids=bugs)


def test_a_world_finds_the_planted_bug(bug: PlantedBug, pytestconfig: pytest.Config) -> None:
    seeds = [] if bug.seed is None else [bug.seed]
    seeds += range(1, 1 + pytestconfig.getoption("--hunt", 0))
    found = first_found(bug, seeds, lambda seed: world.play(plan_of(seed)).broken)
    assert found == (bug.seed, bug.breaks)
