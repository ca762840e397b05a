"""Runs the system of docker-compose.yml for tests, under its own project name, and reads its databases."""

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import pytest

from demo.processes import PROJECT_ROOT

PROJECT: Final = "transactional-messages-test"
PORTS: Final = {"ORDER_PORT": "18080", "CREDIT_PORT": "18081", "INVENTORY_PORT": "18082", "CONSOLE_PORT": "18088"}
"""Others than those of a reader's system and of the tutorials, which run beside it."""
SECRETS: Final = (
    "order-database-admin",
    "order-database",
    "order-database-reader",
    "credit-database-admin",
    "credit-database",
    "credit-database-reader",
    "inventory-database-admin",
    "inventory-database",
    "inventory-database-reader",
    "redis",
    "console",
    "spark",
    "order-api-key",
    "inventory-api-key",
    "order-account",
    "credit-account",
    "inventory-account",
    "reconciliation-account",
    "operators-account",
)
OURS: Final = ("docker-compose.yml",)
APACHE: Final = (*OURS, "deploy/docker-compose.apache.yml")
EVERYTHING: Final = ("--profile", "demo", "--profile", "inventory", "--profile", "spark")


def password_of(secret: str) -> str:
    """Returns a password with the characters that are special in URLs, shells, SQL or Redis."""
    return f"p@s:s/w%o#r?d &+='\"\\$é{secret}"


def authorization(secret: str) -> dict[bytes, bytes]:
    """Returns the request header that carries the key."""
    return {b"Authorization": f"Bearer {password_of(secret)}".encode()}


@dataclass(frozen=True)
class Compose:
    """The system, with its own passwords and ports. Its broker runs from Python source; `test_broker_image` tests the image."""

    docker_program: str
    secrets: Path
    files: tuple[str, ...] = OURS
    settings: tuple[tuple[str, str], ...] = ()
    """What .env would say."""

    def with_apache(self, **settings: str) -> Self:
        """Returns the system with Apache RocketMQ instead of our broker."""
        return replace(self, files=APACHE, settings=tuple(settings.items()))

    def run(self, *arguments: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        """Runs docker compose. Returns its exit status and output."""
        own = {"SECRETS_DIR": str(self.secrets), "DEMO_CPUS": str(os.cpu_count()), "COMPILED": "0", **PORTS}
        environment = {**os.environ, **own, **dict(self.settings)}
        return subprocess.run(
            [*self._program(), "-p", PROJECT, *(word for file in self.files for word in ("-f", file)), *arguments],
            cwd=PROJECT_ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s,
        )  # fmt: skip

    def must(self, *arguments: str, timeout_s: float = 300) -> str:
        """Runs docker compose and returns its output. If it fails, the test fails and shows the containers' last log lines."""
        done = self.run(*arguments, timeout_s=timeout_s)
        assert done.returncode == 0, f"{done.stdout[-4000:]}\n{self.run('logs', '--tail=40').stdout}"
        return done.stdout

    def _program(self) -> list[str]:
        if subprocess.run([self.docker_program, "compose", "version"], capture_output=True).returncode == 0:
            return [self.docker_program, "compose"]
        return [shutil.which("docker-compose") or pytest.skip("no docker compose")]

    def execute(self, service: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a program in the service's container."""
        return self.docker("exec", "-i", *self.ids(service), *arguments, given=given)

    def docker(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Runs docker. Returns its exit status and output."""
        return subprocess.run([self.docker_program, *arguments], input=given, capture_output=True, text=True, timeout=120)

    def kill(self, service: str) -> None:
        """Kills the service's container with SIGKILL and starts it again."""
        (container,) = self.ids(service)
        for step in ("kill", "start"):
            done = self.docker(step, container)
            assert done.returncode == 0, done.stderr

    def ids(self, service: str = "") -> list[str]:
        """Returns the ids of the service's containers, or of all containers, including those that have exited."""
        wanted = [
            f"label=com.docker.compose.project={PROJECT}",
            *([f"label=com.docker.compose.service={service}"] if service else []),
        ]
        filters = [word for each in wanted for word in ("--filter", each)]
        return self.docker("ps", "-a", "-q", *filters).stdout.split()

    def containers(self) -> Mapping[str, Any]:
        """Returns docker's description of each container, by service."""
        inspected = json.loads(self.docker("inspect", *self.ids()).stdout)
        return {each["Config"]["Labels"]["com.docker.compose.service"]: each for each in inspected}

    def rows(self, database: str, name: str, query: str) -> list[tuple[str, ...]] | None:
        """Runs a query as the superuser. Returns None if the database does not respond."""
        asked = self.execute(database, "psql", "-U", "postgres", "-d", name, "-At", "-F", "\t", "-c", query)
        return None if asked.returncode else [tuple(line.split("\t")) for line in asked.stdout.splitlines()]


@dataclass(frozen=True)
class Books:
    """The ledger entries that the orders require and those that exist, each by order and kind."""

    orders: int
    expected: Counter[tuple[str, ...]]
    written: Counter[tuple[str, ...]]

    @property
    def lost(self) -> int:
        """The number of required entries that are missing."""
        return (self.expected - self.written).total()

    @property
    def doubled(self) -> int:
        """The number of entries that no order requires."""
        return (self.written - self.expected).total()


def books_of(compose: Compose) -> Books | None:
    """Reads both databases. Returns None if one of them does not respond."""
    orders = compose.rows("order-database", "orders", "SELECT order_id, state FROM orders")
    entries = compose.rows("credit-database", "credits", "SELECT order_id, kind FROM credits")
    if orders is None or entries is None:
        return None
    kinds = {"PLACED": ("credit",), "PAID": ("credit",), "CANCELLED": ("credit", "reversal")}
    expected = Counter((order_id, kind) for order_id, state in orders for kind in kinds[state])
    return Books(len(orders), expected, Counter(entries))


def settled(compose: Compose) -> Books:
    """Returns the books once no required entry is missing, or after 180 s."""
    found = None
    deadline = time.monotonic() + 180
    while (found is None or found.lost) and time.monotonic() < deadline:
        time.sleep(0.5)
        found = books_of(compose) or found
    assert found is not None, "a database does not answer"
    return found
