"""The catalogue contains all failpoints of the services, as docs/services.md does. Also tests the folder that arms them."""

import re
from pathlib import Path

import pytest

from credit_service.adapters import failpoints as of_credits
from demo.errors import DemoError
from demo.scenarios.failpoints import FAILPOINTS, FailpointFolder, find
from demo.scenarios.plays import SCENARIOS
from order_service.adapters import failpoints as of_orders
from order_service.adapters.failpoints import EXIT_AFTER_LOCAL_COMMIT
from service_runtime.failing.armed_failpoints import ArmedFailpoints

ROOT = Path(__file__).resolve().parents[3]
NAMES = [failpoint.name for failpoint in FAILPOINTS]


def names_in(module: object) -> set[str]:
    """Returns the failpoints among the constants of a module."""
    return {
        value
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str) and name.startswith(("LOSE_", "EXIT_", "HOLD_"))
    }


def test_the_catalogue_has_each_failpoint_of_the_services_once() -> None:
    assert sorted(NAMES) == sorted(names_in(of_orders) | names_in(of_credits))
    assert EXIT_AFTER_LOCAL_COMMIT in NAMES


@pytest.mark.parametrize("module", [of_orders, of_credits])
def test_the_services_describe_each_of_their_failpoints(module: object) -> None:
    described = re.findall(r"^    ([a-z-]+)  +\w", module.__doc__ or "", re.MULTILINE)
    assert set(described) == names_in(module)


def test_the_documentation_has_a_row_for_each_failpoint_in_the_order_of_the_steps() -> None:
    page = (ROOT / "docs" / "services.md").read_text()
    assert re.findall(r"^\| `((?:lose|exit|hold)-[a-z-]+)` \|", page, re.MULTILINE) == NAMES


def test_scenarios_arm_failpoints_that_exist() -> None:
    for scenario in SCENARIOS:
        assert scenario.failpoint is None or find(scenario.failpoint)


def test_a_failpoint_is_armed_for_a_customer_and_disarmed(tmp_path: Path) -> None:
    folder = FailpointFolder(tmp_path)
    folder.arm("lose-commit", "ada")
    folder.arm("lose-task", "")
    assert folder.armed() == {"lose-commit": "ada", "lose-task": ""}
    folder.disarm("lose-commit")
    folder.disarm("lose-commit")
    assert folder.armed() == {"lose-task": ""}


def test_only_those_of_one_customer_are_disarmed_at_the_end_of_a_run(tmp_path: Path) -> None:
    folder = FailpointFolder(tmp_path)
    folder.arm("lose-commit", "ada")
    folder.arm("lose-rollback", "grace")
    folder.disarm_all("ada")
    assert folder.armed() == {"lose-rollback": "grace"}


@pytest.mark.parametrize("name", ["nonsense", "../lose-commit", "hits", ""])
def test_a_name_that_is_none_is_refused_and_touches_no_file(name: str, tmp_path: Path) -> None:
    folder = FailpointFolder(tmp_path)
    for deed in (lambda: folder.arm(name, "ada"), lambda: folder.disarm(name)):
        with pytest.raises(DemoError, match="unknown failpoint"):
            deed()
    assert list(tmp_path.iterdir()) == []


def test_nobody_fills_the_disk_by_arming(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match="201 characters, at most 200"):
        FailpointFolder(tmp_path).arm("lose-commit", "a" * 201)


def test_a_hit_is_a_step_of_its_transactions_timeline(tmp_path: Path) -> None:
    folder = FailpointFolder(tmp_path)
    folder.arm("lose-commit", "ada")
    assert ArmedFailpoints(tmp_path, lambda: 1_000).is_hit("lose-commit", b"for ada", "T1")
    (event,) = folder.events("T1")
    assert (event.what, event.on_record) == ("failpoint lose-commit: COMMIT is not sent.", "failpoints")
    assert event.arrow is not None
    assert (event.arrow.sender, event.arrow.label, event.arrow.is_lost) == ("order_service", "COMMIT", True)
    assert event.at_ms == folder.hits()[0].at_ms
    assert folder.events("T2") == []
