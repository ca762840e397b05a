"""Tests that the broker works with each supported Python version other than the current one.

pip installs the broker from the checkout, as for a user. 3.14 is downloaded, so that it is tested on each machine, and runs
unit tests, too; tests/foreign/windows runs 3.13. The environments contain only the broker's dependencies and the test tools,
which shows that the broker does not depend on the application.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from demo.ports import free_ports
from demo.processes import PROJECT_ROOT
from deploy.scripts.build_wheels import run
from tests.examples import QUICK
from tests.foreign.package.environments import other_pythons, set_up, unhashed
from tests.testing_page import write_testing_page

pytestmark = [pytest.mark.e2e, pytest.mark.release, pytest.mark.slow, pytest.mark.timeout(900)]
SETUP: Final = Path(__file__).with_name("maven-python")
CLIENT: Final = PROJECT_ROOT / "tests" / "foreign" / "windows" / "programs" / "client_program.py"
FOLDER: Final = PROJECT_ROOT / "build" / "pythons"
DOWNLOADED: Final = "3.14"
VERSIONS: Final = [version for version in ("3.11", "3.12", DOWNLOADED) if version != "{}.{}".format(*sys.version_info)]
TOOLS: Final = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis")
EXTRAS: Final = "console,grpc,simulation,sqlalchemy"
UNIT: Final = ("message", "protocol", "transaction", "client", "testing")
COMPONENT: Final = ("testing/apache", "testing/test_as_apache.py")
"""A part that is quick, and passes through all layers: check-backs between a client and a broker whose time the test owns."""

KEPT: Final = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST_", "HYPOTHESIS_"))}
ENVIRONMENT: Final = {**KEPT, "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}

ABSENT: Final = {
    "rocketmq_broker.databases.django",
    "rocketmq_broker.testing.containers",  # both need a library that is not installed here, and say so
    "rocketmq_broker.platform.windows",
}
IMPORT_ALL: Final = f"""
import importlib, pkgutil, rocketmq_broker
names = [module.name for module in pkgutil.walk_packages(rocketmq_broker.__path__, "rocketmq_broker.")]
for name in set(names) - {ABSENT}:
    importlib.import_module(name)
print(len(names))
"""


def interpreter(version: str) -> Path:
    """Returns the Python of this version. Skips the test if that Python is not available."""
    if version != DOWNLOADED:
        if version not in other_pythons():
            pytest.skip(f"no Python {version}: neither on the PATH nor in ~/.pyenv (pyenv install {version})")
        return other_pythons()[version]
    return Path(set_up(SETUP, FOLDER, version).strip())


@pytest.fixture(scope="module", params=VERSIONS)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installs the broker from its source into an environment with pip. Returns the environment's Python."""
    found = interpreter(request.param)
    folder = tmp_path_factory.mktemp("environment")
    # pip builds in the folder itself.
    source = shutil.copytree(
        PROJECT_ROOT / "broker", folder / "broker", ignore=shutil.ignore_patterns("*.so", "build", "*.egg-info")
    )
    run(found, "-m", "venv", folder / "env", cwd=folder)
    constraints = unhashed(PROJECT_ROOT / "requirements.lock", folder)
    own = folder / "env" / "bin" / "python"
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints)
    run(own, *pip, f"{source}[{EXTRAS}]", *TOOLS, cwd=folder)
    return own


def test_every_module_is_imported_without_a_warning(python: Path, tmp_path: Path) -> None:
    assert int(run(python, "-W", "error", "-c", IMPORT_ALL, cwd=tmp_path)) > 500


def test_a_broker_serves_and_stops(python: Path, tmp_path: Path) -> None:
    with broker(python, tmp_path) as name_server:
        for action in (("shops", "send", "order-1", "order-2"), ("credits", "consume", "2")):
            told = run(python, "-W", "error::DeprecationWarning", CLIENT, name_server, *action, cwd=tmp_path)
            assert told.split() == ["order-1", "order-2"]


def test_the_tests_of_the_page_pass(python: Path, tmp_path: Path) -> None:
    write_testing_page(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    told = passes(python, "-v", cwd=tmp_path)
    assert "test_a_lost_commit_is_settled_by_a_check_back PASSED" in told
    assert "test_a_message_that_fails_comes_again PASSED" in told


@pytest.mark.parametrize(("layer", "parts"), [("unit", UNIT), ("component", COMPONENT)])
@pytest.mark.parametrize("python", [DOWNLOADED], indirect=True)
def test_the_tests_pass(python: Path, layer: str, parts: tuple[str, ...]) -> None:
    tests = PROJECT_ROOT / "tests" / layer
    # The conftest files above need the demo, and its libraries.
    below = tests if layer == "unit" else tests / "testing"
    options = ("-q", "-m", "not slow", "-p", "no:cacheprovider", *QUICK, "--confcutdir", below)
    passes(python, *options, *(tests / part for part in parts), cwd=PROJECT_ROOT)


@contextmanager
def broker(python: Path, folder: Path) -> Iterator[str]:
    """Runs a broker. Yields its name server's address and checks that the broker exits cleanly."""
    port, name_server = free_ports(2)
    conf = folder / "broker.conf"
    conf.write_text(f"listenPort={port}\nnamesrvListenPort={name_server}\nstorePathRootDir={folder / 'store'}\n")
    environment = {**ENVIRONMENT, "PYTHONWARNINGS": "error::DeprecationWarning"}
    command: tuple[str | Path, ...] = (python.with_name("rocketmq-broker"), "-c", conf)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert any("boot success" in line for line in process.stdout)
            yield f"127.0.0.1:{name_server}"
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def passes(python: Path, *arguments: str | Path, cwd: Path) -> str:
    """Runs pytest with deprecation warnings as errors. Returns its output."""
    warnings = ("-W", "error::DeprecationWarning", "-W", "error::PendingDeprecationWarning")
    command = [python, "-m", "pytest", *warnings, *arguments]
    done = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert " passed" in done.stdout
    return done.stdout
