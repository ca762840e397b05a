"""Unit tests pass with each other Python of this machine from 3.11 on: core, client, name server, fixture.

They run in an environment that has what the wheel asks for and pytest, nothing else; so they also show that the broker needs
nothing of the reference application.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from demo.processes import PROJECT_ROOT
from deploy.scripts.build_wheels import run
from tests.foreign.package.environments import other_pythons, unhashed

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]
LIBRARIES = ("msgspec", "librt", "typer", "rich", "prometheus-client", "pyyaml")
TOOLS = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis")
UNIT = ("transaction", "nameserver", "client/instance", "client/transaction")
COMPONENT = ("testing/apache", "testing/test_as_apache.py")
"""A part that is quick, and passes through all layers: check-backs between a client and a broker whose time the test owns."""

NONE_FOUND = "no other Python from 3.11 on: neither on the PATH nor in ~/.pyenv (pyenv install 3.13)"

VERSIONS = [pytest.param(version, id=version) for version in sorted(other_pythons())]


@pytest.mark.parametrize("version", VERSIONS or [pytest.param("", marks=pytest.mark.skip(reason=NONE_FOUND))])
def test_the_unit_tests_pass(version: str, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    folder.mkdir()
    run(other_pythons()[version], "-m", "venv", folder, cwd=tmp_path)
    python = folder / "bin" / "python"
    constraints = unhashed(PROJECT_ROOT / "requirements.lock", tmp_path)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints]
    run(*pip, *LIBRARIES, *TOOLS, cwd=tmp_path)
    # The conftest files above need the demo, and its libraries.
    passes(python, UNIT, below=PROJECT_ROOT / "tests" / "unit" / "message")
    passes(python, COMPONENT, below=PROJECT_ROOT / "tests" / "component" / "testing")


def passes(python: Path, packages: Sequence[str], *, below: Path) -> None:
    done = subprocess.run(
        [
            python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--confcutdir", below,
            *(below.parent / package for package in packages),
        ],
        cwd=PROJECT_ROOT,
        # CI: hypothesis gives no example a deadline then.
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT / "broker"), "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert " passed" in done.stdout
