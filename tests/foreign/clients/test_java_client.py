"""Tests of Apache's own Java client, unchanged, against our broker. Each case of the kit in `java` is a test."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
    "namespace",
    "message-trace",
    "tag-filter",
    "consumer-retry",
    "consumer-dlq",
    "broadcast",
    "rebalance",
    "consumer-restart",
    "lite-pull",
    "lite-pull-subscribe",
    "sql-filter-refused",
    "consume-from-first-offset",
    "consume-from-last-offset",
    "pull-by-offset",
    "pull-waits",
    "search-offset",
    "query-by-key",
    "view-by-id",
    "ordered-takeover",
    "ordered-suspend",
    "ordered-dlq",
    "request-reply",
    "request-callback",
    "request-timeout",
    "reply-after-requester-left",
)
FILTER_CASES = (
    "sql-filter",
    "sql-filter-conversions",
    "sql-filter-redelivery",
    "sql-filter-pull",
    "sql-filter-lite-pull",
    "sql-filter-illegal",
)
"""For a broker with enablePropertyFilter=true."""
KIT_SECONDS = 1500
CASES_AT_ONCE = 2
"""Of a client without TLS: several first handshakes at once would take longer than its patience, which is 3 s."""
SETTINGS = {
    "transactionCheckInterval": "2000",
    "transactionTimeOut": "1000",
    "transactionCheckMax": "3",
    "autoCreateTopicEnable": "true",
}
"""What java/README.md expects of a broker."""

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(KIT_SECONDS + 60)]


@dataclass(frozen=True, slots=True)
class Client:
    """A version of Apache's client, and the serializer of its headers."""

    version: str
    serializer: str
    is_secured: bool = False
    """Whether it speaks TLS and signs its requests."""

    def __str__(self) -> str:
        return f"{self.version}-{self.serializer}{'-secured' if self.is_secured else ''}"


OLD_CLIENT = Client("4.3.2", "JSON")
"""It uses the VIP channel unless told otherwise."""
CASES_OF_THE_OLD_CLIENT = (
    "tx-commit",
    "tx-unknown-then-check-commit",
    "send-sync",
    "send-oneway",
    "send-async",
    "send-batch",
    "tag-filter",
    "consumer-retry",
    "consumer-restart",
    "ordered-suspend",
    "search-offset",
    "query-by-key",
    "view-by-id",
)
"""One or more of each request that it sends there: less than a minute of the kit's three."""
PLAIN_CLIENTS = (Client("4.9.7", "JSON"), Client("4.9.7", "ROCKETMQ"), Client("5.3.3", "JSON"))
SECURED_CLIENTS = (Client("4.9.7", "JSON", is_secured=True), Client("5.3.3", "JSON", is_secured=True))
SECURED_CASES = (
    "tx-commit",
    "tx-unknown-then-check-commit",
    "send-sync",
    "send-oneway",
    "send-batch",
    "send-large-body",
    "message-trace",
    "consumer-retry",
    "rebalance",
    "lite-pull",
    "query-by-key",
    "view-by-id",
    "ordered-takeover",
    "request-reply",
)
"""Every kind of request; what a connection is like does not matter to the others."""
BINARY_SECURED_CASES = ("tx-commit", "send-batch", "consumer-retry", "query-by-key")
"""With binary headers: one of each kind of connection. What a signature covers is the same text in both serializations."""
ACCOUNT = ("kit-account", "the secret of the kit")
POP_CASES = ("pop-concurrently", "pop-retry", "pop-orderly")
"""For a client of RocketMQ 5. The kit's `pop-dlq` waits 40 s for RocketMQ's pauses; Apache's gRPC clients go there sooner."""
BROKEN_IN_CLIENT = {("5.3.3", "request-reply"), ("5.3.3", "request-timeout")}
"""There `request` gives up waiting as soon as the message is sent (RequestResponseFuture), on any broker."""


def runs_of(clients: Sequence[Client], cases: Sequence[str]) -> list[tuple[Client, str]]:
    """Returns each case with each client, except the cases that cannot pass with that client."""
    return [(client, case) for client in clients for case in cases if (client.version, case) not in BROKEN_IN_CLIENT]


RUNS = [
    *runs_of(PLAIN_CLIENTS, CASES),
    *runs_of([OLD_CLIENT], CASES_OF_THE_OLD_CLIENT),
    *runs_of([Client("5.3.3", "JSON")], POP_CASES),
]
SECURED_RUNS = [
    *runs_of(SECURED_CLIENTS, SECURED_CASES),
    *runs_of([Client("4.9.7", "ROCKETMQ", is_secured=True)], BINARY_SECURED_CASES),
]
FILTER_RUNS = runs_of(PLAIN_CLIENTS, FILTER_CASES)


class KitRun:
    """The kit's output, case by case, and the broker's log."""

    def __init__(self, output: str, broker_log: str) -> None:
        results = [line for line in output.splitlines() if line.startswith(("PASS ", "FAIL "))]
        self._lines = {line.split()[1].rstrip(":"): line for line in results}
        self._output = output
        self._broker_log = broker_log

    def assert_passed(self, case: str) -> None:
        line = self._lines.get(case, f"the kit printed no line for {case}:\n{self._output}")
        assert line.startswith(f"PASS {case} "), f"{line}\n\nThe broker's log ends:\n{self._broker_log}"


def run_kit(home: Path, client: Client, runs: Sequence[tuple[Client, str]], more_settings: Mapping[str, str]) -> KitRun:
    """Runs all cases of the client at once, against a new broker."""
    namesrv_port, port = free_ports(2)
    settings = {**SETTINGS, **more_settings, "listenPort": str(port), "namesrvListenPort": str(namesrv_port)}
    environment = {
        **os.environ,
        "CLIENT_VERSION": client.version,
        "ROCKETMQ_SERIALIZE_TYPE": client.serializer,
        "CASES_AT_ONCE": "1" if client.is_secured else str(CASES_AT_ONCE),
    }
    if client.is_secured:
        access_key, secret_key = ACCOUNT
        (home / "conf").mkdir()
        accounts = f"accounts:\n- accessKey: {access_key}\n  secretKey: {secret_key}\n  admin: true\n"
        (home / "conf" / "plain_acl.yml").write_text(accounts)
        settings |= {"tls.server.mode": "enforcing", "aclEnable": "true", "rocketmqHome": str(home)}
        environment |= {"TLS": "true", "ACCESS_KEY": access_key, "SECRET_KEY": secret_key}
    command = [str(KIT), f"127.0.0.1:{namesrv_port}", *(case for one, case in runs if one == client)]
    with Processes(home / "logs") as processes:
        add_broker(processes, home, settings).start()
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=KIT_SECONDS)
        return KitRun(run.stdout, f"{run.stderr}\n{processes.logs()['broker']}")


def run_kit_with_each_client(
    homes: pytest.TempPathFactory, runs: Sequence[tuple[Client, str]], more_settings: Mapping[str, str]
) -> dict[Client, KitRun]:
    """Runs the kit with all clients at once, since the cases mostly wait. Returns the runs by client."""
    clients = dict.fromkeys(client for client, _ in runs)
    with ThreadPoolExecutor() as threads:
        running = {client: threads.submit(run_kit, homes.mktemp(str(client)), client, runs, more_settings) for client in clients}
        return {client: run.result() for client, run in running.items()}


@pytest.fixture(scope="module")
def kit_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[Client, KitRun]:
    return run_kit_with_each_client(tmp_path_factory, RUNS, {})


@pytest.fixture(scope="module")
def secured_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[Client, KitRun]:
    return run_kit_with_each_client(tmp_path_factory, SECURED_RUNS, {})


@pytest.fixture(scope="module")
def filter_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[Client, KitRun]:
    return run_kit_with_each_client(tmp_path_factory, FILTER_RUNS, {"enablePropertyFilter": "true"})


@pytest.mark.parametrize(("client", "case"), RUNS, ids=str)
def test_apaches_java_client_passes(kit_runs: dict[Client, KitRun], client: Client, case: str) -> None:
    kit_runs[client].assert_passed(case)


@pytest.mark.parametrize(("client", "case"), SECURED_RUNS, ids=str)
def test_apaches_java_client_passes_with_tls_and_an_account(
    secured_runs: dict[Client, KitRun], client: Client, case: str
) -> None:
    secured_runs[client].assert_passed(case)


@pytest.mark.parametrize(("client", "case"), FILTER_RUNS, ids=str)
def test_apaches_java_client_filters_by_properties(filter_runs: dict[Client, KitRun], client: Client, case: str) -> None:
    filter_runs[client].assert_passed(case)
