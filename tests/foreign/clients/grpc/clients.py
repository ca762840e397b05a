"""Apache's unmodified clients of RocketMQ 5: their programs, required tools, and common cases."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader
from rocketmq_broker.remoting.client import RemotingClient

HERE = Path(__file__).parent
PLAIN = "plain-message"
FIFO_PUSH = "fifo-push-consumer-to-dead-letters"
CASES = (
    PLAIN,
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
    FIFO_PUSH,
)
BUILD_SECONDS = 900
RUN_SECONDS = 600


def python_command(home: Path) -> list[str]:
    return [sys.executable, str(HERE / "python" / "cases.py")]


def python_5_0_9_command(home: Path) -> list[str]:
    site = str(home / "site")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target", site]
    subprocess.run([*install, "rocketmq-python-client==5.0.9"], check=True, capture_output=True, text=True, timeout=BUILD_SECONDS)
    return ["env", f"PYTHONPATH={site}", *python_command(home)]


def java_command(home: Path) -> list[str]:
    return [str(HERE.parent / "java" / "launch"), "Cases"]


def go_command(home: Path) -> list[str]:
    program = str(home / "conformance")
    source = HERE / "go"
    build = [go(), "build", "-buildvcs=false", "-mod=readonly", "-o", program, "."]
    subprocess.run(build, cwd=source, check=True, capture_output=True, text=True, timeout=BUILD_SECONDS)
    return [program]


def go() -> str:
    """Returns the path of the go program, which may be in its default installation folder. Returns "go" if it is missing."""
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin") or "go"


def has(tool: str) -> bool:
    """Returns True if the tool is installed. Go must be at least 1.21, because older versions cannot build the client."""
    if tool != "go":
        return shutil.which(tool) is not None
    if go() == "go":
        return False
    version = subprocess.run([go(), "env", "GOVERSION"], capture_output=True, text=True, timeout=60).stdout
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2]) >= (1, 21)


def node_command(home: Path) -> list[str]:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "node" / name, home)
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    subprocess.run(install, cwd=home, check=True, capture_output=True, text=True, timeout=BUILD_SECONDS)
    return ["node", str(HERE / "node" / "cases.mjs")]


@dataclass(frozen=True, slots=True)
class Client:
    """One of Apache's clients, and the tools that its program needs."""

    name: str
    command: Callable[[Path], list[str]]
    """Builds the program where it must be built, below that folder if anywhere."""
    tools: tuple[str, ...]
    """The programs that it needs."""

    @property
    def prefix(self) -> str:
        """Returns the prefix of the client's topics."""
        return f"{self.name.replace('.', '-')}-"

    def missing(self) -> list[str]:
        return [tool for tool in self.tools if not has(tool)]

    def __str__(self) -> str:
        return self.name


CLIENTS = (
    Client("python-5.1.2", python_command, ()),
    Client("python-5.0.9", python_5_0_9_command, ()),
    Client("java-5.2.0", java_command, ("java", "mvn")),
    Client("go-5.1.4", go_command, ("go",)),
    Client("node-1.0.8", node_command, ("node", "npm")),
)


def results_of(client: Client, endpoint: str, home: Path, cases: Sequence[str] = ()) -> tuple[dict[str, str], str]:
    """Runs these cases, or all cases if none are given, and returns the output line of each case.

    Also returns the program's entire output, or the error if the program failed or timed out.
    """
    home.mkdir()
    try:
        done = subprocess.run(
            [*client.command(home), endpoint, f"{client.prefix}", *cases],
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


async def prepare(broker: str, *, on_apache: bool = False) -> None:
    """Limits the groups of the dead-letter cases to one retry, and creates the FIFO topics.

    Apache's proxy has no route for a topic, or for a group's dead letters, before these exist. A client that requests the route
    then fails to start. Therefore the topics of the cases on Apache's proxy are created as well.
    """
    remoting = RemotingClient()

    async def ask(code: RequestCode, header: CommandHeader | None, body: bytes = b"") -> None:
        answer = await remoting.invoke(broker, code, header, body, timeout_ms=30_000)
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    async def make_topic(topic: str, attributes: str | None = None) -> None:
        header = CreateTopicRequestHeader(topic, "TBW102", 4, 4, 6, "SINGLE_TAG", attributes=attributes)
        await ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    for topic in [client.prefix + case for client in CLIENTS for case in CASES if case.endswith("dead-letters")]:
        is_fifo = topic.endswith(FIFO_PUSH)
        # Apache's proxy asks the group whether it consumes queue by queue; ours asks the topic.
        group = {"groupName": f"group-{topic}", "retryMaxTimes": 1, "consumeMessageOrderly": is_fifo}
        await ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, json.dumps(group).encode())
        if is_fifo:
            await make_topic(topic, "+message.type=FIFO")
        if on_apache:
            await make_topic(f"%DLQ%group-{topic}")
    if on_apache:
        for client in CLIENTS:
            await make_topic(client.prefix + PLAIN)
    await remoting.close()
