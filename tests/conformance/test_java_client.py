"""Apache's own Java client, unchanged, against our broker: each case of the kit in `java` is a test."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
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
    "tx-check-max-discard",
    "tx-check-other-instance",
    "tx-example-status-mod-3",
    "tx-immunity-time",
    "send-sync",
    "send-oneway",
    "send-async",
    "send-batch",
    "send-ordered",
    "send-delayed",
    "send-large-body",
    "send-over-limit",
    "auto-create-topic",
    "fetch-queues",
    "tag-filter",
    "consumer-retry",
    "consumer-dlq",
    "broadcast",
    "rebalance",
    "consumer-restart",
    "lite-pull",
    "consume-from-first-offset",
    "consume-from-last-offset",
    "pull-by-offset",
    "search-offset",
    "query-by-key",
    "view-by-id",
)
SERIALIZERS = ("JSON", "ROCKETMQ")
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


def run_kit(home: Path, serializer: str) -> KitRun:
    """All cases in one go, against a broker of its own."""
    namesrv_port, port = free_ports(2)
    settings = {**SETTINGS, "listenPort": str(port), "namesrvListenPort": str(namesrv_port)}
    with Processes(home / "logs") as processes:
        add_broker(processes, home, settings).start()
        run = subprocess.run(
            [KIT, f"127.0.0.1:{namesrv_port}", *CASES],
            env={**os.environ, "ROCKETMQ_SERIALIZE_TYPE": serializer},
            capture_output=True,
            text=True,
            timeout=KIT_SECONDS,
        )
        return KitRun(run.stdout, f"{run.stderr}\n{processes.logs()['broker']}")


@pytest.fixture(scope="module")
def kit_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KitRun]:
    """By serializer. Both at once: the cases mostly wait."""
    with ThreadPoolExecutor() as threads:
        running = {
            serializer: threads.submit(run_kit, tmp_path_factory.mktemp(serializer), serializer) for serializer in SERIALIZERS
        }
        return {serializer: run.result() for serializer, run in running.items()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_apaches_java_client_passes(kit_runs: dict[str, KitRun], serializer: str, case: str) -> None:
    kit_runs[serializer].assert_passed(case)
