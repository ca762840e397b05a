"""Apache's own clients of RocketMQ 5, unchanged, against our broker: each case of each program in `grpc` is a test."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from rocketmq_broker.protocol.bodies import SubscriptionGroupBody
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers import CreateTopicRequestHeader
from rocketmq_broker.remoting.client import RemotingClient

HERE = Path(__file__).parent
CASES = (
    "plain-message",
    "fifo-messages",
    "delayed-message",
    "tag-filter",
    "sql-filter",
    "invisible-time-changed",
    "transaction-committed",
    "transaction-rolled-back",
    "lost-decision-checked-back",
    "push-consumer-with-a-retry",
    "push-consumer-to-dead-letters",
    "fifo-push-consumer-to-dead-letters",
)
BUILD_SECONDS = 900
RUN_SECONDS = 600
SETTINGS = {
    "transactionCheckInterval": "1000",
    "transactionTimeOut": "1000",
    "messageDelayLevel": "1s 1s 1s 5s",
    "enablePropertyFilter": "true",
}

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS + RUN_SECONDS + 60)]


def python_command(home: Path) -> list[str]:
    return [sys.executable, str(HERE / "grpc" / "python" / "cases.py")]


def java_command(home: Path) -> list[str]:
    return [str(HERE / "java" / "launch"), "Cases"]


def go_command(home: Path) -> list[str]:
    program = str(home / "conformance")
    source = HERE / "grpc" / "go"
    build = [go(), "build", "-buildvcs=false", "-mod=readonly", "-o", program, "."]
    subprocess.run(build, cwd=source, check=True, capture_output=True, text=True, timeout=BUILD_SECONDS)
    return [program]


def go() -> str:
    """Returns Go's program, which may be where its makers' archive puts it. "go" alone says that there is none."""
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or "go"


def has(tool: str) -> bool:
    """Returns whether the program is here. Go older than 1.21 cannot build the client, nor fetch a newer Go."""
    if tool != "go":
        return shutil.which(tool) is not None
    if go() == "go":
        return False
    version = subprocess.run([go(), "env", "GOVERSION"], capture_output=True, text=True, timeout=60).stdout
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2]) >= (1, 21)


def node_command(home: Path) -> list[str]:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "grpc" / "node" / name, home)
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    subprocess.run(install, cwd=home, check=True, capture_output=True, text=True, timeout=BUILD_SECONDS)
    return ["node", str(HERE / "grpc" / "node" / "cases.mjs")]


@dataclass(frozen=True, slots=True)
class Client:
    """A client of Apache's, and what its program needs."""

    name: str
    command: Callable[[Path], list[str]]
    """Builds the program where it must be built, below that folder if anywhere."""
    tools: tuple[str, ...]
    """The programs that it needs."""

    def missing(self) -> list[str]:
        return [tool for tool in self.tools if not has(tool)]

    def __str__(self) -> str:
        return self.name


CLIENTS = (
    Client("python-5.1.2", python_command, ()),
    Client("java-5.2.0", java_command, ("java", "mvn")),
    Client("go-5.1.4", go_command, ("go",)),
    Client("node-1.0.8", node_command, ("node", "npm")),
)


@dataclass(frozen=True, slots=True)
class Run:
    """What the clients' programs printed, by client and case, and what they and the broker said beside it."""

    lines: Mapping[tuple[Client, str], str]
    errors: Mapping[Client, str]
    broker_log: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All programs at once, against one broker: they mostly wait."""
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


def results_of(client: Client, endpoint: str, home: Path) -> tuple[dict[str, str], str]:
    """Returns the line of each case, and what the program said beside them, or why it was not built or did not end."""
    home.mkdir()
    try:
        done = subprocess.run(
            [*client.command(home), endpoint, f"{client.name.replace('.', '-')}-"],
            # Clients write their logs below the home directory.
            env={**os.environ, "CLIENT_VERSION": "grpc-5.2.0"} | ({} if "mvn" in client.tools else {"HOME": str(home)}),
            cwd=home,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
        return {}, f"{failure}: {failure.stdout!r} {failure.stderr!r}"
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line), done.stdout + done.stderr


async def prepare(broker: str) -> None:
    """Lets the groups of the cases about dead letters give up after one retry, and makes the topics for FIFO messages alone."""
    remoting = RemotingClient()

    async def ask(code: RequestCode, header: CommandHeader | None, body: bytes = b"") -> None:
        answer = await remoting.invoke(broker, code, header, body, timeout_ms=30_000)
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    for client in CLIENTS:
        for case in CASES:
            topic = f"{client.name.replace('.', '-')}-{case}"
            if case.endswith("dead-letters"):
                group = SubscriptionGroupBody(group_name=f"group-{topic}", retry_max_times=1)
                await ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, group.encode())
            if case.startswith("fifo-push"):
                header = CreateTopicRequestHeader(topic, "TBW102", 4, 4, 6, "SINGLE_TAG", attributes="+message.type=FIFO")
                await ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    await remoting.close()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_apache_s_client_passes(run: Run, client: Client, case: str) -> None:
    if client.missing():
        pytest.skip(f"the client needs {' and '.join(client.missing())}: see tests/conformance/grpc/README.md")
    assert run.lines.get((client, case)) == "ok", (
        f"{run.errors[client][-5000:]}\n\nThe broker's log ends:\n{run.broker_log[-3000:]}"
    )


def test_nothing_went_wrong_in_the_broker(run: Run) -> None:
    assert "Traceback" not in run.broker_log
