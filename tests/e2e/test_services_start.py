"""How the services' processes start, say why they cannot, and stop."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from demo.ports import free_ports
from demo.processes import PROJECT_ROOT, Process, Processes, prints
from demo.system import redis_command

pytestmark = pytest.mark.e2e

SERVICES = ["order_service", "credit_service", "credit_service.worker"]
HTTP_SERVICES = SERVICES[:2]
ORDER = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 100}]}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Databases of their own, and addresses where nobody listens."""
    order_port, credit_port, namesrv_port, redis_port = free_ports(4)
    return {
        "ORDER_DATABASE_URL": f"sqlite:///{tmp_path}/orders.db",
        "CREDIT_DATABASE_URL": f"sqlite:///{tmp_path}/credits.db",
        "ORDER_HTTP_PORT": str(order_port),
        "CREDIT_HTTP_PORT": str(credit_port),
        "NAMESRV_ADDR": f"127.0.0.1:{namesrv_port}",
        "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
        "ORDER_DATABASE_START_TIMEOUT_S": "1",
        "CREDIT_DATABASE_START_TIMEOUT_S": "1",
    }


def run_to_its_end(module: str, environment: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=PROJECT_ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def last_line(ended: "subprocess.CompletedProcess[str]") -> str:
    assert "Traceback" not in ended.stderr
    return ended.stderr.strip().splitlines()[-1]


def start(processes: Processes, module: str, environment: Mapping[str, str]) -> Process:
    process = processes.add(module, [sys.executable, "-m", module], environment=environment, is_ready=prints(" ready: "))
    process.start()
    return process


@pytest.mark.parametrize(("module", "variable"), [("order_service", "ORDER_HTTP_PORT"), ("credit_service", "CREDIT_HTTP_PORT")])
def test_a_port_in_use_is_said_in_one_line(module: str, variable: str, environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", int(environment[variable]))):
        ended = run_to_its_end(module, environment)
    assert ended.returncode == 1
    assert last_line(ended) == f"{module}: cannot listen on 127.0.0.1:{environment[variable]}: Address already in use"


@pytest.mark.parametrize("module", SERVICES)
def test_a_database_that_cannot_be_reached_is_said_in_one_line_without_its_password(
    module: str, environment: dict[str, str]
) -> None:
    url = "postgresql+psycopg://ann:hunter2@127.0.0.1:1/books"
    ended = run_to_its_end(module, environment | {"ORDER_DATABASE_URL": url, "CREDIT_DATABASE_URL": url})
    assert ended.returncode == 1
    assert last_line(ended).startswith(
        f"{module}: cannot use the database postgresql+psycopg://ann:***@127.0.0.1:1/books after 1 s"
    )
    assert "hunter2" not in ended.stderr + ended.stdout


@pytest.mark.parametrize("module", SERVICES)
def test_a_database_url_that_is_none_is_said_in_one_line(module: str, environment: dict[str, str]) -> None:
    ended = run_to_its_end(module, environment | {"ORDER_DATABASE_URL": "orders.db", "CREDIT_DATABASE_URL": "credits.db"})
    assert ended.returncode == 1
    assert "the database URL cannot be read" in last_line(ended)


@pytest.mark.parametrize(
    ("module", "variable", "value"),
    [
        ("order_service", "ORDER_HTTP_PORT", "http"),
        ("order_service", "FAILPOINTS", "explode"),
        ("credit_service", "CREDIT_BATCH_SIZE", "0"),
        ("credit_service.worker", "CREDIT_WORKER_PROCESSES", "none"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(module: str, variable: str, value: str, environment: dict[str, str]) -> None:
    ended = run_to_its_end(module, environment | {variable: value})
    assert ended.returncode == 2
    assert last_line(ended).startswith(f"{module}: {variable}: ")


@pytest.mark.parametrize("module", ["credit_service", "credit_service.worker"])
def test_a_redis_url_that_is_none_is_said_in_one_line(module: str, environment: dict[str, str]) -> None:
    ended = run_to_its_end(module, environment | {"REDIS_URL": "http://:hunter2@localhost"})
    assert ended.returncode == 1
    assert "REDIS_URL" in last_line(ended)
    assert "hunter2" not in ended.stderr


@pytest.mark.parametrize("module", SERVICES)
def test_help_lists_what_can_be_set(module: str, environment: dict[str, str]) -> None:
    ended = run_to_its_end(module, environment, "--help")
    assert ended.returncode == 0
    assert "database-url" in ended.stdout


@pytest.mark.parametrize("module", HTTP_SERVICES)
def test_a_service_starts_without_a_broker_says_so_and_stops_on_sigterm(
    module: str, environment: dict[str, str], processes: Processes
) -> None:
    process = start(processes, module, environment)
    url = next(line.split()[-1] for line in process.output().splitlines() if " ready: " in line)
    health = httpx.get(f"{url}/healthz", timeout=30)
    assert (health.status_code, health.json()["broker"], health.json()["database"]) == (503, "unreachable", "ok")
    stop_within_seconds(process)


def test_without_a_broker_an_order_is_503_and_no_row(environment: dict[str, str], processes: Processes) -> None:
    start(processes, "order_service", environment | {"ORDER_SEND_TIMEOUT_MS": "500"})
    url = f"http://127.0.0.1:{environment['ORDER_HTTP_PORT']}"
    assert httpx.post(f"{url}/orders", json=ORDER, timeout=30).status_code == 503
    assert httpx.get(f"{url}/orders?customer=ada", timeout=30).json()["orders"] == []


def test_the_worker_stops_on_sigterm_whether_redis_is_there_or_not(
    environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    port = int(environment["REDIS_URL"].rsplit(":", 1)[1].removesuffix("/0"))
    redis = processes.add("redis", redis_command(port, tmp_path), is_ready=prints("Ready to accept connections"))
    redis.start()
    worker = start(processes, "credit_service.worker", environment)
    stop_within_seconds(worker)
    worker.start()
    redis.kill()
    stop_within_seconds(worker)


def stop_within_seconds(process: Process) -> None:
    began = time.monotonic()
    os.kill(process.pid, 15)
    assert process.wait(timeout_s=30) == 0
    print(f"{process.name} stopped within {time.monotonic() - began:.1f} s")
