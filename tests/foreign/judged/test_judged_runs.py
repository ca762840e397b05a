"""Tests that Porcupine accepts the history of a real run with faults: on our broker, and on Apache's."""

from pathlib import Path

import pytest

from lab.benchmarks.side_by_side.generator import find_go
from lab.judged.brokers import JudgedBroker
from lab.judged.run import run
from lab.judged.verdict import judge

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_go() is None, reason="go not found: apt-get install golang-go"),
]
SECONDS = 25
SEED = 48


@pytest.mark.parametrize(
    "broker", [JudgedBroker.OURS, pytest.param(JudgedBroker.APACHE, marks=(pytest.mark.java, pytest.mark.release))]
)
def test_a_run_with_faults_is_linearizable(broker: JudgedBroker, tmp_path: Path) -> None:
    played = run(tmp_path, broker, SECONDS, SEED, print)
    verdicts = judge(played.history, tmp_path)

    print(dict(played.responses), dict(played.faults), verdicts)
    assert sum(number for fault, number in played.faults.items() if fault.startswith("broker")) >= 1
    assert verdicts["order"].objects > 20
    assert all(verdict.operations for verdict in verdicts.values())
    assert all(verdict.is_accepted for verdict in verdicts.values()), tmp_path / "refused.html"
