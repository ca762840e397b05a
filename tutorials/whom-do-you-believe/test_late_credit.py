"""Tests the solution of the exercise: a finding for late credits. Runs only the reconciliation rules, without Spark."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PATCH = Path(__file__).with_name("late_credit.patch")
TEN_MINUTES_MS = 600_000
JUDGE = """
import json, sys
from pipelines.judging.cut_off import CutOff
from pipelines.repair.planning import ADVICE
from tests.unit.pipelines.judging.sqlite_judge import judge
from tests.unit.pipelines.judging.stories import OLD, credit, healthy

late_by_ms = int(sys.argv[1])
events = [event | {"credited_at_ms": OLD + late_by_ms} if "credited_at_ms" in event else event for event in healthy("a")]
(row,) = judge(events, CutOff(OLD + 10 * 600_000), 0)
print(json.dumps([row["finding"], row["cause"], row["finding"] in ADVICE]))
"""


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a copy of the package `pipelines`, to which the patch of the solution is applied."""
    folder = tmp_path_factory.mktemp("patched")
    shutil.copytree(CHECKOUT / "pipelines", folder / "pipelines", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "apply", "-C1", str(PATCH)], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(
    ("late_by_ms", "told"), [(TEN_MINUTES_MS + 1, ["late_credit", None, True]), (TEN_MINUTES_MS, ["matched", None, False])]
)
def test_a_credit_is_late_after_ten_minutes_and_one_millisecond(patched: Path, late_by_ms: int, told: list[object]) -> None:
    environment = os.environ | {"PYTHONPATH": f"{patched}{os.pathsep}{CHECKOUT}"}
    command = [sys.executable, "-P", "-c", JUDGE, str(late_by_ms)]
    judged = subprocess.run(command, env=environment, cwd=patched, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout) == told
