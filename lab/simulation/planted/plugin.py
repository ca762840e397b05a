"""A pytest plugin that plants a bug for the whole test run: `pytest -p lab.simulation.planted.plugin --plant NAME`.

The tests that fail are those that detect the bug.
"""

from __future__ import annotations

import pytest

from lab.simulation.planted.all_planted import find_planted
from lab.simulation.planted.patches import Patches


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option `--plant`."""
    parser.addoption("--plant", metavar="NAME", help="plant this bug (lab.simulation.planted) for the whole run")


def pytest_configure(config: pytest.Config) -> None:
    """Plants the bug before any test is imported."""
    name = config.getoption("--plant")
    if name:
        patches = Patches()
        find_planted(name).plant(patches)
        config.add_cleanup(patches.undo)
