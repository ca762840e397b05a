"""docker-compose.yml, built and run for real: the same system with PostgreSQL and Redis."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from demo.processes import PROJECT_ROOT
from tests.fixed_ports import the_fixed_ports

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(7200)]
PROJECT = "transactional-messages-test"
SECRETS = (
    "order-database-admin",
    "order-database",
    "order-database-reader",
    "credit-database-admin",
    "credit-database",
    "credit-database-reader",
    "redis",
    "order-account",
    "credit-account",
    "operators-account",
)
LISTENERS = {
    "redis": 6379,
    "order-database": 5432,
    "credit-database": 5432,
    "broker": 10911,
    "order-service": 8080,
    "credit-service": 8081,
}
"""What listens in which container."""
NEIGHBOURS = {
    "order-service": {"order-database", "broker", "order-service", "credit-service"},
    "credit-service": {"credit-database", "redis", "broker", "order-service", "credit-service"},
    "credit-worker": {"credit-database", "redis", "credit-service"},
    "broker": {"broker", "order-service", "credit-service"},
}
"""Who reaches whom."""
KILLED = 137
"""The exit code of a container that had to be killed."""

REACH = """
import socket, sys
for address in sys.argv[2:]:
    try:
        socket.create_connection((address, int(sys.argv[1])), 2).close()
    except OSError:
        continue
    print("reached")
"""
LOG_IN = """
import psycopg, sys
try:
    psycopg.connect(host=sys.argv[1], dbname=sys.argv[2], user=sys.argv[3], password=sys.stdin.read(), connect_timeout=20)
except psycopg.OperationalError as error:
    sys.exit(str(error))
"""
ASK_REDIS = """
import redis
try:
    redis.Redis("redis").ping()
except redis.AuthenticationError:
    print("refused")
"""


def password_of(secret: str) -> str:
    """A password of everything that means something to URLs, shells, SQL or Redis."""
    return f"p@s:s/w%o#r?d &+='\"\\$é{secret}"


class Compose:
    """The system under a project name of its own, with passwords of its own."""

    def __init__(self, docker: str, secrets: Path) -> None:
        self._docker = docker
        self._environment = {**os.environ, "SECRETS_DIR": str(secrets), "DEMO_CPUS": str(os.cpu_count())}
        has_plugin = subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0
        program = [docker, "compose"] if has_plugin else [shutil.which("docker-compose") or pytest.skip("no docker compose")]
        self._command = [*program, "-p", PROJECT]

    def run(self, *arguments: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            cwd=PROJECT_ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )

    def execute(self, service: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a program in the service's container."""
        return self.docker("exec", "-i", *self.ids(service), *arguments, given=given)

    def docker(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([self._docker, *arguments], input=given, capture_output=True, text=True, timeout=120)

    def ids(self, service: str = "") -> list[str]:
        """The ids of the service's containers, or of all, those that have ended included."""
        wanted = [
            f"label=com.docker.compose.project={PROJECT}",
            *([f"label=com.docker.compose.service={service}"] if service else []),
        ]
        filters = [word for each in wanted for word in ("--filter", each)]
        return self.docker("ps", "-a", "-q", *filters).stdout.split()

    def containers(self) -> Mapping[str, Any]:
        """What docker knows of each container, by service."""
        inspected = json.loads(self.docker("inspect", *self.ids()).stdout)
        return {each["Config"]["Labels"]["com.docker.compose.service"]: each for each in inspected}


@pytest.fixture(scope="module")
def compose(docker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    """The system, up; down and its volumes gone in the end."""
    secrets = tmp_path_factory.mktemp("secrets")
    for secret in SECRETS:
        (secrets / secret).write_text(password_of(secret))
        (secrets / secret).chmod(0o644)
    subprocess.run([PROJECT_ROOT / "docker" / "make-secrets", secrets], check=True, timeout=60)  # the broker's accounts
    with the_fixed_ports():
        yield from _up(Compose(docker, secrets))


def _up(running: Compose) -> Iterator[Compose]:
    down = ["--profile", "demo", "down", "-v", "--remove-orphans"]
    try:
        # What a broken-off run left would be counted as well.
        for step in (down, ["--profile", "demo", "build", "-q"], ["up", "-d"]):
            done = running.run(*step, timeout_s=2400)
            assert done.returncode == 0, f"{done.stdout[-3000:]}\n{running.run('logs', '--tail=30').stdout}"
        yield running
    finally:
        running.run(*down)


def test_the_demo_ends_consistent_on_postgresql(compose: Compose) -> None:
    demo = compose.run("run", "--rm", "demo", timeout_s=3000)
    assert demo.returncode == 0, f"{demo.stdout[-4000:]}\n{compose.run('logs', '--tail=40').stdout}"
    assert "380 orders placed and 20 refused" in demo.stdout
    assert "consistent: 380 orders, 380 credits, 0 lost, 0 doubled" in demo.stdout
    credit = httpx.get("http://127.0.0.1:8081/customers/customer-01/credit", timeout=30)
    assert credit.json()["points"] > 0


def test_only_the_two_http_ports_are_published_and_only_on_loopback(compose: Compose) -> None:
    bindings = [
        (binding["HostIp"], binding["HostPort"])
        for container in compose.containers().values()
        for published in container["NetworkSettings"]["Ports"].values()
        for binding in published or ()
    ]
    assert sorted(bindings) == [("127.0.0.1", "8080"), ("127.0.0.1", "8081")]


def test_our_processes_run_without_privileges(compose: Compose) -> None:
    containers = compose.containers()
    ours = [each for each in containers.values() if each["Config"]["Image"] == "transactional-messages"]
    assert len(ours) == 4
    assert {(each["Config"]["User"], each["HostConfig"]["ReadonlyRootfs"]) for each in ours} == {("app", True)}
    assert containers["redis"]["Config"]["User"] == "redis"
    for each in containers.values():
        assert each["HostConfig"]["CapDrop"] == ["ALL"]
        assert "no-new-privileges:true" in each["HostConfig"]["SecurityOpt"]


def test_each_container_has_bounds(compose: Compose) -> None:
    for service, container in compose.containers().items():
        bounds = [container["HostConfig"][name] for name in ("Memory", "NanoCpus", "PidsLimit")]
        assert all(bound and bound > 0 for bound in bounds), (service, bounds)


@pytest.mark.parametrize("service", NEIGHBOURS)
def test_a_container_reaches_its_neighbours_only(compose: Compose, service: str) -> None:
    containers = compose.containers()
    reached = set()
    for target, port in LISTENERS.items():
        addresses = [network["IPAddress"] for network in containers[target]["NetworkSettings"]["Networks"].values()]
        asked = compose.execute(service, "python", "-c", REACH, str(port), *addresses)
        assert asked.returncode == 0, asked.stderr
        if "reached" in asked.stdout:
            reached.add(target)
    assert reached == NEIGHBOURS[service]


@pytest.mark.parametrize(
    ("service", "database", "name"),
    [("order-service", "order-database", "orders"), ("credit-service", "credit-database", "credits")],
)
def test_services_own_their_database_and_are_no_superusers(compose: Compose, service: str, database: str, name: str) -> None:
    query = f"""
        SELECT 'superuser ' || rolname FROM pg_roles
            WHERE rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls
        UNION ALL SELECT 'owner ' || rolname FROM pg_database JOIN pg_roles r ON r.oid = datdba WHERE datname = '{name}'
        UNION ALL SELECT DISTINCT 'user ' || usename FROM pg_stat_activity WHERE client_addr IS NOT NULL
    """
    asked = compose.execute(database, "psql", "-U", "postgres", "-d", name, "-Atc", query)
    assert sorted(asked.stdout.splitlines()) == [f"owner {name}", "superuser postgres", f"user {name}"], asked.stderr

    def log_in(user: str, password: str) -> str:
        return compose.execute(service, "python", "-c", LOG_IN, database, name, user, given=password).stderr

    assert log_in(name, password_of(database)) == ""
    assert "no pg_hba.conf entry" in log_in("postgres", password_of(f"{database}-admin"))
    assert "password authentication failed" in log_in(name, "wrong")


def test_the_judge_cannot_write(compose: Compose) -> None:
    as_reader = ["psql", "-U", "orders_reader", "-d", "orders"]
    assert "read-only transaction" in compose.execute("order-database", *as_reader, "-c", "DELETE FROM orders").stderr
    writable = "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"
    asked = compose.execute("order-database", *as_reader, "-c", writable, "-c", "DELETE FROM orders")
    assert "permission denied for table orders" in asked.stderr


def test_redis_answers_nobody_without_its_password(compose: Compose) -> None:
    assert compose.execute("credit-worker", "python", "-c", ASK_REDIS).stdout == "refused\n"


def test_operators_see_transactions_in_the_brokers_container_and_services_do_not(compose: Compose) -> None:
    admin = ("python", "-m", "broker.admin")
    for command in (("pending",), ("discarded",), ("dead-letters", "list")):
        asked = compose.execute("broker", *admin, *command)
        assert asked.returncode == 0, asked.stderr
    assert "Need admin permission" in compose.execute("order-service", *admin, "pending").stderr
    nobody = compose.execute(
        "order-service", "env", "-u", "ROCKETMQ_ACCESS_KEY", "-u", "ROCKETMQ_SECRET_KEY_FILE", *admin, "pending"
    )
    assert "No accessKey is configured" in nobody.stderr


def test_no_password_is_shown_to_who_inspects_containers_or_reads_logs(compose: Compose) -> None:
    seen = json.dumps(compose.containers(), ensure_ascii=False) + compose.run("logs").stdout
    seen += "".join(compose.execute(service, "cat", "/proc/1/cmdline", "/proc/1/environ").stdout for service in NEIGHBOURS)
    for secret in SECRETS:
        password = password_of(secret)
        for spelling in (password, quote(password, safe=""), json.dumps(password, ensure_ascii=False)[1:-1]):
            assert spelling not in seen


def test_the_health_of_a_worker_is_its_own(compose: Compose) -> None:
    check = compose.containers()["credit-worker"]["Config"]["Healthcheck"]["Test"][1:]
    grown = compose.run("up", "-d", "--no-recreate", "--scale", "credit-worker=2", "credit-worker")
    assert grown.returncode == 0, grown.stdout
    stopped, running = compose.ids("credit-worker")
    for each in (stopped, running):
        until(lambda each=each: compose.docker("exec", each, *check).returncode == 0)
    compose.docker("kill", "--signal", "STOP", stopped)
    try:
        until(lambda: compose.docker("exec", stopped, *check).returncode != 0)  # another worker answers, and that must not count
        assert compose.docker("exec", running, *check).returncode == 0
    finally:
        compose.docker("kill", "--signal", "CONT", stopped)
        compose.run("up", "-d", "--no-recreate", "--scale", "credit-worker=1", "credit-worker")


def until(condition: Callable[[], bool], timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(1)


def test_all_stop_in_the_time_they_are_given(compose: Compose) -> None:
    """The last test of the file: nothing runs afterwards."""
    done = compose.run("stop", timeout_s=600)
    assert done.returncode == 0, done.stdout
    codes = {service: container["State"]["ExitCode"] for service, container in compose.containers().items()}
    assert KILLED not in codes.values(), codes
