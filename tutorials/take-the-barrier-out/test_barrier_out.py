"""Runs a simulation plan with a copy of the order service that has no barrier. Also tests the solutions of the exercises."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from lab.simulation.judges.violation import Promise
from lab.simulation.world import play
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent, read_plan
from tests.lab.planted.all_planted import PLANTED

pytestmark = pytest.mark.worlds

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
PLAY = """
import sys
from pathlib import Path
from lab.simulation.world import play
from rocketmq_broker.testing.simulation.plan import read_plan
violations = play(read_plan(Path(sys.argv[1]).read_bytes())).broken
print(*violations, sep="\\n")
sys.exit(bool(violations))
"""


@pytest.fixture
def without_barrier(tmp_path: Path) -> Path:
    """Returns a folder with a copy of the package `order_service` from which the barrier is removed."""
    shutil.copytree(CHECKOUT / "order_service", tmp_path / "order_service", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "apply", "-C1", HERE / "without_barrier.patch"], cwd=tmp_path, check=True)
    return tmp_path


def simulate(plan: Plan, folder: Path, *packages: Path) -> subprocess.CompletedProcess[str]:
    """Runs a simulation plan in another process. The folders `packages` take precedence over the checkout's packages."""
    file = folder / "plan.json"
    file.write_text(plan.written())
    path = os.pathsep.join(map(str, (*packages, CHECKOUT)))
    return subprocess.run(
        [sys.executable, "-P", "-c", PLAY, file],
        env=os.environ | {"PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def late_orders() -> Plan:
    """Returns the chapter's plan."""
    return read_plan((HERE / "late_orders.json").read_bytes())


def locked_for(plan: Plan, seconds: float) -> Plan:
    """Returns the plan with `seconds` as the duration of the database lock."""

    def changed(event: PlannedEvent) -> PlannedEvent:
        return replace(event, for_s=seconds) if event.what == "database.locked" else event

    return plan.with_events(map(changed, plan.events))


def test_without_the_barrier_a_transaction_gets_two_outcomes(without_barrier: Path, tmp_path: Path) -> None:
    ran = simulate(late_orders(), tmp_path, without_barrier)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert Promise.ONE_OUTCOME in ran.stdout
    assert "order_service told the broker COMMIT, after ROLLBACK" in ran.stdout


def test_with_the_barrier_the_same_plan_keeps_every_promise() -> None:
    assert play(late_orders()).broken == ()


def test_a_lock_that_ends_before_the_first_check_back_does_no_harm_without_the_barrier(
    without_barrier: Path, tmp_path: Path
) -> None:
    """Tests the solution of the first exercise."""
    ran = simulate(locked_for(late_orders(), 5.5), tmp_path, without_barrier)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_one_message_that_is_delivered_twice_shows_a_balance_that_grows_by_duplicates() -> None:
    """Tests the solution of the second exercise."""
    plan = read_plan((HERE / "twice.json").read_bytes())
    assert play(plan).broken == ()
    with PLANTED["duplicates-added"].planted():
        broken = play(plan).broken
    assert broken[0].promise == Promise.BALANCE_IS_SUM
