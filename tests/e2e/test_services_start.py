"""Tests of the services' processes: start, errors at the start, and stop."""

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import httpx
import pytest

from demo.ports import free_ports
from demo.processes import Process, Processes, prints
from tests.conftest import BrokerProcess

pytestmark = pytest.mark.e2e

PATIENT_ORDER_SERVICE = {"ORDER_SEND_TIMEOUT_MS": "100000", "ORDER_STOP_TIMEOUT_S": "100"}
"""However slow the machine is, a broker that hangs hangs for longer."""
ORDER = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 100}]}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Returns the settings for separate databases, and for addresses at which no server listens."""
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


def start(processes: Processes, module: str, environment: Mapping[str, str]) -> Process:
    process = processes.add(module, [sys.executable, "-m", module], environment=environment, is_ready=prints(" ready: "))
    process.start()
    return process


def test_a_service_starts_without_a_broker_says_so_and_stops_on_sigterm(
    environment: dict[str, str], processes: Processes
) -> None:
    process = start(processes, "credit_service", environment)
    url = ready_url(process)
    health = httpx.get(f"{url}/healthz", timeout=30)
    assert (health.status_code, health.json()["broker"], health.json()["database"]) == (503, "unreachable", "ok")
    stop_within_seconds(process)


@pytest.fixture
def hanging_broker(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    """Yields a broker that a test can suspend. It then accepts connections but does not respond, until the end of the test."""
    yield broker
    os.kill(broker.process.pid, signal.SIGCONT)


def test_an_order_that_is_being_placed_is_answered_although_the_service_is_told_to_stop(
    hanging_broker: BrokerProcess, environment: dict[str, str], processes: Processes
) -> None:
    settings = PATIENT_ORDER_SERVICE | {"NAMESRV_ADDR": hanging_broker.namesrv_addr, "ORDER_PLACING_MAX": "1"}
    process = start(processes, "order_service", environment | settings)
    url = ready_url(process)
    assert httpx.post(f"{url}/orders", json=ORDER, timeout=60).status_code == 201
    os.kill(hanging_broker.process.pid, signal.SIGSTOP)
    with ThreadPoolExecutor(2) as customers:
        placing = [customers.submit(httpx.post, f"{url}/orders", json=ORDER, timeout=120) for _ in range(2)]
        (refused,), (placed,) = wait(placing, timeout=60, return_when=FIRST_COMPLETED)
        assert refused.result().json()["title"] == "Too many orders at once"
        os.kill(process.pid, signal.SIGTERM)
        wait_until_nobody_listens(url)
        os.kill(hanging_broker.process.pid, signal.SIGCONT)
        assert placed.result(120).status_code == 201
        assert process.wait(timeout_s=60) == 0


def test_a_service_that_waits_for_its_database_stops_on_sigterm(environment: dict[str, str], processes: Processes) -> None:
    """A service that waits for its database exits with status 0 on SIGTERM.

    The service needs a handler, because the kernel ignores SIGTERM for the first process of a container that has none.
    """
    away = {"ORDER_DATABASE_URL": "postgresql://ann@127.0.0.1:1/orders", "ORDER_DATABASE_START_TIMEOUT_S": "3600"}
    process = processes.add(
        "order_service",
        [sys.executable, "-m", "order_service"],
        environment=environment | away,
        is_ready=prints("does not answer yet"),
    )
    process.start()
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout_s=30) == 0
    assert "order_service: stopped by a signal during the start" in process.output()


def ready_url(process: Process) -> str:
    return next(line.split()[-1] for line in process.output().splitlines() if " ready: " in line)


def wait_until_nobody_listens(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=60).close()
        except ConnectionError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def stop_within_seconds(process: Process) -> None:
    began = time.monotonic()
    os.kill(process.pid, 15)
    assert process.wait(timeout_s=30) == 0
    print(f"{process.name} stopped within {time.monotonic() - began:.1f} s")
