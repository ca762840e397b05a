"""Tests the compiled build: it passes the broker's tests, and pip prefers its wheel.

The broker is compiled once. These are the tests of `make test-compiled` that are most likely to fail after
compilation. `make wheels` compiles for the other Python versions.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from demo.processes import PROJECT_ROOT
from deploy.scripts.build_wheels import build_wheel, installed_build

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(2400)]
CORE = ("message", "protocol", "store", "transaction", "filter", "server")
IN_PROCESS = ("tests/unit/test_compiled_modules.py", *(f"tests/unit/{package}" for package in CORE))
REAL_PROCESSES = ("tests/e2e/test_broker_process.py",)
ASKED_BY_JAVA = ("tests/foreign/clients/test_java_with_ephemeral_broker.py",)


DIGESTS = """
from rocketmq_broker.build_info import is_compiled
from lab.simulation.plans import plan_of
from lab.simulation.world import play
print(is_compiled())
for seed in range(1, 7):
    print(seed, play(plan_of(seed)).digest)
"""


@pytest.fixture(scope="module")
def build() -> Path:
    """Compiles the broker. Returns the folder of the compiled build and its wheel."""
    done = subprocess.run([PROJECT_ROOT / "deploy" / "scripts" / "compile"], capture_output=True, text=True, timeout=2000)
    if "compiler and Python's headers are missing" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return PROJECT_ROOT / "build"


def output_of(*arguments: str, build: Path | None) -> str:
    """Runs Python on the compiled build, as COMPILED=1 does, or on the source, and returns what it printed."""
    chosen = ("PYTEST_", "HYPOTHESIS_", "ROCKETMQ_BROKER_COMPILED", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(chosen)}
    compiled = {"ROCKETMQ_BROKER_COMPILED": "1", "PYTHONPATH": str(build / "compiled")} if build else {}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=PROJECT_ROOT, env={**kept, **compiled}, capture_output=True, text=True, timeout=2000
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def passes(build: Path, *tests: str) -> None:
    """Runs the tests on the compiled build. Raises AssertionError if any of them fails."""
    output_of("-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick", *tests, build=build)


def test_the_unit_tests_of_core_and_server_pass(build: Path) -> None:
    passes(build, *IN_PROCESS)


def test_a_compiled_broker_starts_serves_and_ends_as_the_other_does(build: Path) -> None:
    passes(build, *REAL_PROCESSES)


@pytest.mark.java
def test_apaches_java_client_gets_what_it_expects(build: Path) -> None:
    passes(build, *ASKED_BY_JAVA)


def test_both_builds_make_the_same_history_of_the_same_worlds(build: Path) -> None:
    """The compiled and the pure build behave identically in simulations with the same seeds.

    Each frame and each write has the same bytes at the same simulated time.
    """
    source, compiled = (output_of("-c", DIGESTS, build=which).splitlines() for which in (None, build))
    assert (source[0], compiled[0]) == ("False", "True")
    assert source[1:] == compiled[1:]


def test_the_checkout_finds_the_build_to_be_of_this_very_source(build: Path) -> None:
    command = [PROJECT_ROOT / "deploy" / "scripts" / "broker-build", sys.executable, "-m", "rocketmq_broker", "--version"]
    kept = {name: value for name, value in os.environ.items() if name not in ("COMPILED", "PYTHONPATH")}
    done = subprocess.run(command, cwd=PROJECT_ROOT, env=kept, capture_output=True, text=True, timeout=60)
    assert done.stderr == "broker: compiled (build/compiled)\n"
    assert ", compiled, " in done.stdout


@pytest.mark.release
def test_pip_prefers_the_compiled_wheel_to_the_one_for_any_python(build: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    pure = build_wheel(Path(sys.executable), PROJECT_ROOT / "broker", wheels, tmp_path)
    assert pure.name.endswith("-py3-none-any.whl")
    assert ", compiled, " not in installed_build(Path(sys.executable), wheels, tmp_path)
    (compiled,) = (build / "wheel").glob("*.whl")
    shutil.copy(compiled, wheels)
    assert ", compiled, " in installed_build(Path(sys.executable), wheels, tmp_path)
