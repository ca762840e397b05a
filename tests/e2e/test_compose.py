"""docker-compose.yml, built and run for real: the same system with PostgreSQL and Redis."""

import json
import shutil
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from demo.processes import PROJECT_ROOT
from tests.fixed_ports import the_fixed_ports

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(3600)]
PROJECT = "transactional-messages-test"


class Compose:
    """The system under a project name of its own."""

    def __init__(self, docker: str) -> None:
        self._docker = docker
        has_plugin = subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0
        program = [docker, "compose"] if has_plugin else [shutil.which("docker-compose") or pytest.skip("no docker compose")]
        self._command = [*program, "-p", PROJECT]

    def run(self, *arguments: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            cwd=PROJECT_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )

    def containers(self) -> list[dict[str, object]]:
        """What docker knows of each container."""
        ids = self.run("ps", "-q").stdout.split()
        inspected = subprocess.run([self._docker, "inspect", *ids], capture_output=True, text=True, timeout=60, check=True)
        return json.loads(inspected.stdout)


@pytest.fixture(scope="module")
def compose(docker: str) -> Iterator[Compose]:
    """The system, up; down and its volumes gone in the end."""
    with the_fixed_ports():
        yield from _up(Compose(docker))


def _up(running: Compose) -> Iterator[Compose]:
    try:
        for step in (["--profile", "demo", "build", "-q"], ["up", "-d"]):
            done = running.run(*step, timeout_s=2400)
            assert done.returncode == 0, f"{done.stdout[-3000:]}\n{running.run('logs', '--tail=30').stdout}"
        yield running
    finally:
        running.run("--profile", "demo", "down", "-v", "--remove-orphans")


def test_the_demo_ends_consistent_on_postgresql(compose: Compose) -> None:
    demo = compose.run("run", "--rm", "demo", timeout_s=900)
    assert demo.returncode == 0, f"{demo.stdout[-4000:]}\n{compose.run('logs', '--tail=40').stdout}"
    assert "380 orders placed and 20 refused" in demo.stdout
    credit = httpx.get("http://127.0.0.1:8081/customers/customer-01/credit", timeout=30)
    assert credit.json()["points"] > 0


def test_only_the_two_http_ports_are_published_and_only_on_loopback(compose: Compose) -> None:
    bindings = [
        (binding["HostIp"], binding["HostPort"])
        for container in compose.containers()
        for published in container["NetworkSettings"]["Ports"].values()
        for binding in published or ()
    ]
    assert sorted(bindings) == [("127.0.0.1", "8080"), ("127.0.0.1", "8081")]


def test_our_processes_run_without_privileges(compose: Compose) -> None:
    ours = [container for container in compose.containers() if container["Config"]["Image"] == "transactional-messages"]
    assert len(ours) == 4
    assert {(container["Config"]["User"], container["HostConfig"]["ReadonlyRootfs"]) for container in ours} == {("app", True)}
