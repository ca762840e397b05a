"""Apache's own Python client of RocketMQ 5, unchanged, against our broker: each case of `python_v5/cases.py` is a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker

PROGRAM = Path(__file__).parent / "python_v5" / "cases.py"
CASES = (
    "plain-message",
    "fifo-messages",
    "delayed-message",
    "tag-filter",
    "invisible-time-changed",
    "transaction-committed",
    "transaction-rolled-back",
    "lost-decision-checked-back",
    "push-consumer-with-a-retry",
)
RUN_SECONDS = 600
SETTINGS = {"transactionCheckInterval": "1000", "transactionTimeOut": "1000", "messageDelayLevel": "1s 1s 1s 5s"}

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(RUN_SECONDS + 60)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The line of each case, from one run of the program."""
    home = tmp_path_factory.mktemp("broker")
    namesrv_port, port, grpc_port = free_ports(3)
    ports = {"listenPort": str(port), "namesrvListenPort": str(namesrv_port), "grpcServerPort": str(grpc_port)}
    with Processes(home / "logs") as processes:
        add_broker(processes, home, SETTINGS | ports).start()
        run = subprocess.run(
            [sys.executable, PROGRAM, f"127.0.0.1:{grpc_port}"],
            env={**os.environ, "HOME": str(home)},  # the client writes its log there
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
        log = processes.logs()
    lines = dict(line.split(" ", 1) for line in run.stdout.splitlines() if " " in line)
    return {**lines, "log": "\n".join(log.values()), "errors": run.stderr}


@pytest.mark.parametrize("case", CASES)
def test_apache_s_python_client(results: Mapping[str, str], case: str) -> None:
    assert results.get(case) == "ok", results["errors"][-3000:]


def test_nothing_went_wrong_in_the_broker(results: Mapping[str, str]) -> None:
    assert "Traceback" not in results["log"]
