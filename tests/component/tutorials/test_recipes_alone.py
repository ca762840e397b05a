"""Collects the tests of each recipe with the packages of its `pip install` line alone, as in an environment for one recipe."""

import os
import subprocess
import sys
from importlib.metadata import entry_points, packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.recipes import RECIPES, brought_by_pip_line
from tests.without_modules import without_modules


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_its_tests_need_no_other_package(recipe: Path) -> None:
    brought = brought_by_pip_line(recipe, with_broker=True)
    left_out = {
        module for module, owners in packages_distributions().items() if brought.isdisjoint(map(canonicalize_name, owners))
    }
    plugins = [
        f"-p{plugin.name}" for plugin in entry_points(group="pytest11")
        if plugin.dist is not None and canonicalize_name(plugin.dist.name) in brought
    ]  # fmt: skip
    options = ["--collect-only", "-q", str(recipe), *plugins]
    source = f"{without_modules(left_out)}\nimport pytest\nsys.exit(pytest.main({options}))"
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert recipe.name in done.stdout
