"""The image of the broker alone, built and run for real: programs on the host use the broker in the container."""

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from demo.ports import free_ports
from demo.processes import PROJECT_ROOT
from rocketmq_broker import __version__
from rocketmq_broker.client import LocalTransactionState, PullConsumer, TransactionProducer
from rocketmq_broker.message import Message, MessageExt
from scripts.build_image import added_bytes, build_image, refuse_image, version_in

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(1800)]
IMAGE: Final = "rocketmq-broker-test"


@dataclass(frozen=True, slots=True)
class Container:
    """A broker in a container."""

    docker: str
    id: str
    namesrv_addr: str
    address: str

    def run(self, *arguments: str) -> str:
        return run(self.docker, *arguments)

    def inspect(self) -> dict[str, Any]:
        (inspected,) = json.loads(self.run("inspect", self.id))
        return dict(inspected)


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image(docker: str) -> str:
    build_image(IMAGE)
    return IMAGE


@pytest.fixture(scope="module")
def container(docker: str, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """With ports of its own: those that are usual may be taken on this machine."""
    namesrv_port, port = free_ports(2)
    settings = (PROJECT_ROOT / "docker" / "image.conf").read_text()
    changed = settings.replace("listenPort=10911", f"listenPort={port}").replace(
        "namesrvListenPort=9876", f"namesrvListenPort={namesrv_port}"
    )
    conf: Path = tmp_path_factory.mktemp("conf") / "broker.conf"
    conf.write_text(changed)
    conf.chmod(0o644)
    conf.parent.chmod(0o755)
    published = [word for each in (namesrv_port, port) for word in ("-p", f"127.0.0.1:{each}:{each}")]
    mounted = ["-v", f"{conf}:/etc/rocketmq/broker.conf:ro"]
    started = run(docker, "run", "-d", *published, *mounted, "-e", "BROKER_IP1=127.0.0.1", image)
    try:
        running = Container(docker, started, f"127.0.0.1:{namesrv_port}", f"127.0.0.1:{port}")
        wait_until_healthy(running)
        yield running
    finally:
        run(docker, "rm", "-f", "-v", started)


def wait_until_healthy(container: Container) -> None:
    deadline = time.monotonic() + 120
    while (health := container.inspect()["State"]["Health"])["Status"] != "healthy":
        assert time.monotonic() < deadline, (health, container.run("logs", container.id))
        time.sleep(0.5)


class Orders:
    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE


async def test_a_client_on_the_host_uses_the_broker_in_the_container(container: Container) -> None:
    async with TransactionProducer("shop", Orders(), namesrv_addr=container.namesrv_addr, send_timeout_ms=30_000) as producer:
        sent = await producer.send_message_in_transaction(Message.of("orders", "order 1"))
        assert sent.local_transaction_state is LocalTransactionState.COMMIT_MESSAGE
    async with PullConsumer("auditors", namesrv_addr=container.namesrv_addr) as consumer:
        consumer.assign(await consumer.queues("orders"))
        texts: list[str] = []
        while not texts:
            texts += [message.text for message in await consumer.poll()]
    assert texts == ["order 1"]


def test_the_broker_runs_without_privileges_and_keeps_its_store_in_a_volume(container: Container) -> None:
    inspected = container.inspect()
    assert inspected["Config"]["User"] == "10001:10001"
    assert [mount["Destination"] for mount in inspected["Mounts"] if mount["Type"] == "volume"] == ["/data"]


def test_the_broker_is_compiled_and_its_compiler_is_left_behind(container: Container) -> None:
    assert "boot success" in (told := container.run("logs", container.id))
    assert told.endswith(", compiled")
    missing = ["cc", "gcc", "as", "ld"]
    assert (
        container.run("exec", container.id, "sh", "-c", f"for each in {' '.join(missing)}; do command -v $each; done; true") == ""
    )
    packages = container.run("exec", container.id, "ls", "/opt/venv/lib/python3.11/site-packages")
    assert {"mypy", "mypyc"}.isdisjoint(packages.split())


def test_the_image_is_as_a_release_wants_it(image: str) -> None:
    refuse_image(image, added_bytes(image), version_in(image), __version__)


def test_the_broker_ends_cleanly_when_it_is_stopped(container: Container) -> None:
    """The last test of the file: the broker does not run afterwards."""
    container.run("stop", "-t", "60", container.id)
    assert container.inspect()["State"]["ExitCode"] == 0
