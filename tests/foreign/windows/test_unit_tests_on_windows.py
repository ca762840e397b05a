"""The unit tests, the database tests and the documentation's examples pass under CPython for Windows."""

import re
from pathlib import Path
from typing import Final

import pytest

from demo.processes import PROJECT_ROOT
from tests.examples import QUICK
from tests.foreign.windows.conftest import PROGRAMS, Windows
from tests.testing_page import write_testing_page

pytestmark = [pytest.mark.e2e, pytest.mark.release, pytest.mark.slow, pytest.mark.timeout(1800)]
UNIT: Final = ("store", "client", "testing")
"""The packages that call the system. The others compute, and tests/foreign/pythons runs them with another Python."""
COMPONENT: Final = {
    "databases": ("-p", "tests.foreign.windows.programs.sqlite_alone"),
    "app/test_client_page.py": (),
}
"""Component tests that need nothing but loopback, each with further options."""
PYTEST: Final = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *QUICK)
LOOPS: Final = """
import asyncio


def pytest_asyncio_loop_factories(config, item):
    return {"proactor": asyncio.ProactorEventLoop, "selector": asyncio.SelectorEventLoop}
"""


@pytest.mark.parametrize("package", UNIT)
def test_the_unit_tests_pass(windows: Windows, package: str) -> None:
    unit = PROJECT_ROOT / "tests" / "unit"
    # The conftest files above need the demo, and its libraries.
    told = windows.run(*PYTEST, "--confcutdir", unit, unit / package, cwd=PROJECT_ROOT)
    assert " passed" in told


@pytest.mark.parametrize("package", COMPONENT)
def test_the_component_tests_pass(windows: Windows, package: str) -> None:
    path = PROJECT_ROOT / "tests" / "component" / package
    folder = path if path.is_dir() else path.parent
    fixtures = ("-p", "rocketmq_broker.testing.plugin", *COMPONENT[package])
    told = windows.run(*PYTEST, "--confcutdir", folder, *fixtures, path, cwd=PROJECT_ROOT)
    assert " passed" in told


def test_what_the_system_offers(windows: Windows) -> None:
    told = windows.run(*PYTEST, "--confcutdir", PROGRAMS, PROGRAMS / "platform_on_windows.py", cwd=PROJECT_ROOT)
    assert re.search(r"^\d+ passed in", told, re.MULTILINE)


def test_the_tests_of_the_page_pass_on_both_event_loops(windows: Windows, tmp_path: Path) -> None:
    write_testing_page(tmp_path)
    (tmp_path / "conftest.py").write_text(LOOPS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    told = windows.run(
        "-m", "pytest", "-v", "-p", "rocketmq_broker.testing.plugin", "-p", "no:cacheprovider", tmp_path, cwd=tmp_path
    )
    assert "test_a_lost_commit_is_settled_by_a_check_back[proactor] PASSED" in told
    assert "test_a_lost_commit_is_settled_by_a_check_back[selector] PASSED" in told
    assert "test_a_message_that_fails_comes_again PASSED" in told
