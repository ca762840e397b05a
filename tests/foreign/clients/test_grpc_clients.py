"""Tests this broker with Apache's unmodified clients of RocketMQ 5. Each case of each program in `grpc` is a test."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from tests.foreign.clients.grpc.clients import BUILD_SECONDS, CASES, CLIENTS, RUN_SECONDS, Client, prepare, results_of

SETTINGS = {
    "transactionCheckInterval": "1000",
    "transactionTimeOut": "1000",
    "messageDelayLevel": "1s 1s 1s 5s",
    "enablePropertyFilter": "true",
}

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS + RUN_SECONDS + 60)]


@dataclass(frozen=True, slots=True)
class Run:
    """The lines that the clients' programs printed, by client and case, and the output of the programs and the broker."""

    lines: Mapping[tuple[Client, str], str]
    errors: Mapping[Client, str]
    broker_log: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs all programs concurrently against one broker, because they mostly wait."""
    home = tmp_path_factory.mktemp("broker")
    namesrv_port, port, grpc_port = free_ports(3)
    ports = {"listenPort": str(port), "namesrvListenPort": str(namesrv_port), "grpcServerPort": str(grpc_port)}
    present = [client for client in CLIENTS if not client.missing()]
    with Processes(home / "logs") as processes, ThreadPoolExecutor() as threads:
        add_broker(processes, home, SETTINGS | ports).start()
        asyncio.run(prepare(f"127.0.0.1:{port}"))
        running = {client: threads.submit(results_of, client, f"127.0.0.1:{grpc_port}", home / client.name) for client in present}
        results = {client: result.result() for client, result in running.items()}
        log = processes.logs()["broker"]
    lines = {(client, case): line for client, (found, _) in results.items() for case, line in found.items()}
    return Run(lines, {client: errors for client, (_, errors) in results.items()}, log)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_apache_s_client_passes(run: Run, client: Client, case: str) -> None:
    if client.missing():
        pytest.skip(f"the client needs {' and '.join(client.missing())}: see tests/foreign/clients/grpc/README.md")
    assert run.lines.get((client, case)) == "ok", (
        f"{run.errors[client][-5000:]}\n\nThe broker's log ends:\n{run.broker_log[-3000:]}"
    )


def test_nothing_went_wrong_in_the_broker(run: Run) -> None:
    assert "Traceback" not in run.broker_log
