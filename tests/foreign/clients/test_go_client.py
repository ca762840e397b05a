"""Tests this broker with Apache's unmodified Go client. Each case of the program in `go` is a test."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker

PROGRAM = Path(__file__).parent / "go"
CASES = (
    "send-sync",
    "send-async",
    "send-oneway",
    "tag-filter",
    "sql-filter",
    "tx-commit",
    "tx-rollback",
    "tx-unknown-then-commit",
    "tx-unknown-then-rollback",
    "tx-unknown-twice-then-commit",
    "tx-exactly-the-committed-once",
    "retry",
    "request-reply",
    "request-timeout",
)
BUILD_SECONDS = 900
RUN_SECONDS = 900
SETTINGS = {
    "transactionCheckInterval": "2000",
    "transactionTimeOut": "1000",
    "autoCreateTopicEnable": "true",
    "enablePropertyFilter": "true",
}
ACCOUNTS = """
accounts:
- accessKey: go-account
  secretKey: the secret of Go
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB
"""

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS + RUN_SECONDS + 60)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the program, and returns its path. Go uses its default caches."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        pytest.skip("go not found: apt-get install golang-go")
    binary = tmp_path_factory.mktemp("go") / "conformance"
    subprocess.run(
        [go, "build", "-buildvcs=false", "-mod=readonly", "-o", binary, "."], cwd=PROGRAM, check=True, timeout=BUILD_SECONDS
    )
    return binary


def run_program(program: Path, home: Path, *, is_secured: bool) -> Mapping[str, str]:
    """Runs all cases against a new broker, which requires an account if `is_secured`. Returns the output line of each case."""
    namesrv_port, port = free_ports(2)
    settings, environment = {**SETTINGS, "listenPort": str(port), "namesrvListenPort": str(namesrv_port)}, dict(os.environ)
    if is_secured:
        (home / "conf").mkdir()
        (home / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
        settings |= {"aclEnable": "true", "rocketmqHome": str(home)}
        environment |= {"ACCESS_KEY": "go-account", "SECRET_KEY": "the secret of Go"}
    with Processes(home / "logs") as processes:
        add_broker(processes, home, settings).start()
        run = subprocess.run(
            [program, f"127.0.0.1:{namesrv_port}"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS,
        )
        missing = f"no line in:\n{run.stdout}\n\nThe broker's log ends:\n{processes.logs()['broker']}"
    printed = {line.split()[1]: line for line in run.stdout.splitlines() if line.startswith(("PASS ", "FAIL "))}
    return {**dict.fromkeys(CASES, missing), **printed}


@pytest.fixture(scope="module")
def results(program: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Mapping[str, str]]:
    """Runs the program without and with an account at once, since the cases mostly wait."""
    with ThreadPoolExecutor() as threads:
        homes = {is_secured: tmp_path_factory.mktemp("broker") for is_secured in (False, True)}
        running = {it: threads.submit(run_program, program, home, is_secured=it) for it, home in homes.items()}
        return {is_secured: run.result() for is_secured, run in running.items()}


@pytest.mark.parametrize("is_secured", [False, True], ids=["everybody", "accounts only"])
@pytest.mark.parametrize("case", CASES)
def test_apaches_go_client_passes(results: dict[bool, Mapping[str, str]], is_secured: bool, case: str) -> None:
    assert results[is_secured][case] == f"PASS {case}"
