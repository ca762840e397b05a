"""Apache's own Java client, unchanged, against our broker: each case of the kit in `java` is a test."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker

KIT = Path(__file__).parent / "java" / "run"
CASES = (
    "tx-commit",
    "tx-rollback",
    "tx-invisible-until-commit",
    "tx-unknown-then-check-commit",
    "tx-unknown-then-check-rollback",
    "tx-listener-throws",
    "tx-check-other-instance",
    "send-sync",
    "send-async",
    "send-oneway",
    "tag-filter",
    "consumer-restart",
    "auto-create-topic",
)
KIT_SECONDS = 500
SETTINGS = {
    "transactionCheckInterval": "2000",
    "transactionTimeOut": "1000",
    "transactionCheckMax": "3",
    "autoCreateTopicEnable": "true",
}
"""What java/README.md expects of a broker."""

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(KIT_SECONDS + 60)]


class KitRun:
    """What one run of the kit printed, case by case, and the broker's log."""

    def __init__(self, output: str, broker_log: str) -> None:
        results = [line for line in output.splitlines() if line.startswith(("PASS ", "FAIL "))]
        self._lines = {line.split()[1].rstrip(":"): line for line in results}
        self._output = output
        self._broker_log = broker_log

    def assert_passed(self, case: str) -> None:
        line = self._lines.get(case, f"the kit printed no line for {case}:\n{self._output}")
        assert line.startswith(f"PASS {case} "), f"{line}\n\nThe broker's log ends:\n{self._broker_log}"


@pytest.fixture(scope="module", params=["JSON", "ROCKETMQ"])
def kit_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KitRun]:
    """All cases in one go, with JSON headers and again with binary ones."""
    home = tmp_path_factory.mktemp("conformance")
    namesrv_port, port = free_ports(2)
    settings = {**SETTINGS, "listenPort": str(port), "namesrvListenPort": str(namesrv_port)}
    with Processes(home / "logs") as processes:
        add_broker(processes, home, settings).start()
        run = subprocess.run(
            [KIT, f"127.0.0.1:{namesrv_port}", *CASES],
            env={**os.environ, "ROCKETMQ_SERIALIZE_TYPE": request.param},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=KIT_SECONDS,
        )
        yield KitRun(run.stdout, processes.logs()["broker"])


@pytest.mark.parametrize("case", CASES)
def test_apaches_java_client_passes(kit_run: KitRun, case: str) -> None:
    kit_run.assert_passed(case)
