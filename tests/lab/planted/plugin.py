"""A pytest plugin for planted bugs: `pytest -p tests.lab.planted.plugin`.

`--plant NAME` plants a bug for the whole test run. The tests that fail are those that detect the bug. `--hunt SEEDS` lets
`tests/lab/planted` search these seeds, 1 to SEEDS, for each bug that the seed in its description no longer finds.
"""

import pytest

from tests.lab.planted.all_planted import PLANTED
from tests.lab.planted.patches import Patches


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options `--plant` and `--hunt`."""
    parser.addoption("--plant", metavar="NAME", choices=PLANTED, help="plant this bug (tests.lab.planted) for the whole run")
    parser.addoption("--hunt", metavar="SEEDS", type=int, default=0, help="search seeds 1 to SEEDS for each planted bug")


def pytest_configure(config: pytest.Config) -> None:
    """Plants the bug before any test is imported."""
    name = config.getoption("--plant")
    if name:
        patches = Patches()
        PLANTED[name].plant(patches)
        config.add_cleanup(patches.undo)
