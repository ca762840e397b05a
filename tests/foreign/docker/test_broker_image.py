"""Builds the broker's image, runs it, and tests that programs on the host can use the broker in the container."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.wait_strategies import HealthcheckWaitStrategy

from deploy.scripts.build_image import added_bytes, build_image, refuse_image, version_in
from rocketmq_broker import __version__
from rocketmq_broker.testing.containers import RocketMQContainer

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(1800)]
CHECKOUT: Final = Path(__file__).parents[3]
IMAGE: Final = "rocketmq-broker-test"

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def image(docker: str) -> str:
    build_image(IMAGE)
    return IMAGE


@pytest.fixture(scope="module")
def container(docker: str, image: str) -> Iterator[RocketMQContainer]:
    """Runs the container without ryuk, whose image may be missing. Ryuk removes the containers of a killed test run."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(testcontainers_config, "ryuk_disabled", True)
        with RocketMQContainer(image, is_grpc_open=True) as started:
            yield started


def attributes(container: RocketMQContainer) -> dict[str, Any]:
    """Returns the container's current attributes, as the Docker engine reports them."""
    container.reload()
    return dict(container.get_wrapped_container().attrs)


def test_the_program_of_the_page_sends_a_transaction_through_the_container(
    image: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(r"^```python\n(.*?)^```", (CHECKOUT / "docs" / "testcontainers.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT / "broker"))
    pytester.makepyfile(found[1].replace('"rocketmq-broker"', f'"{image}"'))
    pytester.makeini("[pytest]\nasyncio_mode = auto")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_its_ports_are_published_on_loopback_under_their_own_numbers(container: RocketMQContainer) -> None:
    addresses = (container.namesrv_addr, container.broker_addr, container.grpc_endpoint)
    published = {
        f"{at['HostIp']}:{inside.removesuffix('/tcp')}": f"{at['HostIp']}:{at['HostPort']}"
        for inside, bound in attributes(container)["NetworkSettings"]["Ports"].items()
        for at in bound or ()
    }
    assert published == dict(zip(addresses, addresses, strict=True))


async def test_a_client_of_rocketmq_5_is_told_the_published_endpoint(container: RocketMQContainer) -> None:
    assert container.grpc_endpoint is not None
    async with grpc.aio.insecure_channel(container.grpc_endpoint) as channel:
        await asyncio.wait_for(channel.channel_ready(), 60)


def test_the_broker_runs_without_privileges_and_keeps_its_store_in_a_volume(container: RocketMQContainer) -> None:
    assert attributes(container)["Config"]["User"] == "10001:10001"
    assert [mount["Destination"] for mount in attributes(container)["Mounts"] if mount["Type"] == "volume"] == ["/data"]


def test_the_health_check_looks_at_the_ports_of_the_settings(container: RocketMQContainer) -> None:
    HealthcheckWaitStrategy().wait_until_ready(container)


def test_the_broker_is_compiled_and_its_compiler_is_left_behind(container: RocketMQContainer) -> None:
    told, _ = container.get_logs()
    assert told.decode().strip().endswith(", compiled")
    missing = " ".join(["cc", "gcc", "as", "ld"])
    assert container.exec(["sh", "-c", f"for each in {missing}; do command -v $each; done; true"]).output == b""
    packages = container.exec(["ls", "/opt/venv/lib/python3.11/site-packages"]).output.decode()
    assert {"mypy", "mypyc"}.isdisjoint(packages.split())


def test_the_image_is_as_a_release_wants_it(image: str) -> None:
    refuse_image(image, added_bytes(image), version_in(image), __version__)


def test_a_broker_that_refuses_a_setting_says_so_at_once(container: RocketMQContainer, image: str) -> None:
    refused = RocketMQContainer(image, settings={"flushDiskType": "SOMETIMES"})
    with pytest.raises(RuntimeError, match="exit code: 2") as raised, refused:
        pass
    assert "flushDiskType=SOMETIMES" in "".join(raised.value.__notes__)


def test_the_broker_ends_cleanly_when_it_is_stopped(container: RocketMQContainer) -> None:
    """The broker exits with code 0 when its container is stopped. This must be the last test of the file."""
    container.get_wrapped_container().stop(timeout=60)
    assert attributes(container)["State"]["ExitCode"] == 0
