"""Tests that Apache's broker passes the tester of tutorials/build_your_own, except for known differences."""

import sys
from pathlib import Path

import pytest

from tests.e2e.solution_store import ALL_SENT, seen_after_changing_brokers
from tutorials.build_your_own.curriculum import STAGES
from tutorials.build_your_own.tester.run import Order, run_stages

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1200)]

BROKER = Path(__file__).with_name("broker_alone")
PATIENCE_S = 120
DOES_OTHERWISE = {
    10: "While no producer of the group is online, no check-back is counted: the first one that is sent has number 1",
    12: "A COMMIT after a ROLLBACK is refused, and delivers nothing; a ROLLBACK after a COMMIT takes nothing back",
}
"""By stage, the claim at which Apache's broker fails: it uses check-backs up unasked, and believes every decision."""


@pytest.mark.release
def test_apaches_broker_passes_all_stages_but_what_it_does_otherwise(tmp_path: Path) -> None:
    order = Order([str(BROKER)], tmp_path, PATIENCE_S, side_by_side=2)
    failed = {verdict.stage.number: verdict.failure for verdict in run_stages(order, STAGES) if verdict.failure is not None}
    assert {number: failure.claim.sentence for number, failure in failed.items()} == DOES_OTHERWISE


def test_the_store_of_the_solution_goes_on_under_apaches_broker(tmp_path: Path) -> None:
    solution = [sys.executable, "-m", "tutorials.build_your_own.solution"]
    assert seen_after_changing_brokers(solution, [str(BROKER)], tmp_path, PATIENCE_S) == ALL_SENT
