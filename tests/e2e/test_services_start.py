"""How the services' processes start, say why they cannot, and stop."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import httpx
import pytest

from demo.ports import free_ports
from demo.processes import PROJECT_ROOT, Process, Processes, prints
from demo.system import redis_command
from tests.conftest import BrokerProcess

pytestmark = pytest.mark.e2e

SERVICES = ["order_service", "credit_service", "credit_service.worker"]
HTTP_SERVICES = SERVICES[:2]
PATIENT_ORDER_SERVICE = {"ORDER_SEND_TIMEOUT_MS": "100000", "ORDER_STOP_TIMEOUT_S": "100"}
"""However slow the machine is, a broker that hangs hangs for longer."""
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
    assert ended.returncode == 2
    assert "DATABASE_URL: the database URL cannot be read" in last_line(ended)


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
    assert ended.returncode == 2
    assert last_line(ended).startswith(f"{module}: REDIS_URL: ")
    assert "hunter2" not in ended.stderr


@pytest.mark.parametrize("module", HTTP_SERVICES)
def test_names_that_other_programs_use_put_no_service_on_their_database_or_address(
    module: str, environment: dict[str, str], processes: Processes, tmp_path: Path
) -> None:
    stray = {
        "DATABASE_URL": f"sqlite:///{tmp_path}/stray.db",
        "HTTP_HOST": "0.0.0.0",
        "HTTP_PORT": "1",
        "order_http_host": "0.0.0.0",
    }
    process = start(processes, module, environment | stray)
    assert ready_url(process).startswith("http://127.0.0.1:")
    assert not (tmp_path / "stray.db").exists()


@pytest.mark.parametrize("module", HTTP_SERVICES)
def test_a_service_listens_on_all_addresses_of_localhost(module: str, environment: dict[str, str], processes: Processes) -> None:
    host = {"ORDER_HTTP_HOST": "localhost", "CREDIT_HTTP_HOST": "localhost"}
    process = start(processes, module, environment | host)
    url = ready_url(process)
    assert url.startswith("http://localhost:")
    addresses = {info[4][0] for info in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
    for address in addresses:
        shown = f"[{address}]" if ":" in address else address
        assert httpx.get(f"http://{shown}:{url.rpartition(':')[2]}/openapi.json", timeout=30).status_code in (200, 404)


def test_migrating_is_a_command_of_its_own(environment: dict[str, str]) -> None:
    done = run_to_its_end("order_service", environment, "migrate")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("database sqlite:///")
    assert ": migrated from no tables to revision 000" in done.stdout


def test_a_history_is_adopted_by_a_command_that_asks_for_a_reason(environment: dict[str, str]) -> None:
    missing = run_to_its_end("order_service", environment, "adopt-history", "--order-adoption-reason", "the other one is gone")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "run python -m order_service migrate" in missing.stderr
    run_to_its_end("order_service", environment, "migrate")
    without = run_to_its_end("order_service", environment, "adopt-history")
    assert (without.returncode, without.stdout) == (2, "")
    assert without.stderr == "order_service adopt-history: ORDER_ADOPTION_REASON: Field required\n"
    done = run_to_its_end("order_service", environment, "adopt-history", "--order-adoption-reason", "the other one is gone")
    assert (done.returncode, done.stderr) == (0, "")
    assert "it decides for all half messages until 20" in done.stdout
    assert "what it does not have is rolled back when the broker asks next" in done.stdout


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
    url = ready_url(process)
    health = httpx.get(f"{url}/healthz", timeout=30)
    assert (health.status_code, health.json()["broker"], health.json()["database"]) == (503, "unreachable", "ok")
    stop_within_seconds(process)


@pytest.fixture
def hanging_broker(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    """A broker that can be made to hang: stopped, it accepts connections and answers nothing. Continued when the test ends."""
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


def test_orders_are_read_while_a_hundred_wait_for_a_broker_that_hangs(
    hanging_broker: BrokerProcess, environment: dict[str, str], processes: Processes
) -> None:
    settings = PATIENT_ORDER_SERVICE | {"NAMESRV_ADDR": hanging_broker.namesrv_addr, "ORDER_PLACING_MAX": "4"}
    process = start(processes, "order_service", environment | settings)
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(base_url=ready_url(process), timeout=120, limits=limits) as client, ThreadPoolExecutor(100) as customers:
        assert client.post("/orders", json=ORDER).status_code == 201
        os.kill(hanging_broker.process.pid, signal.SIGSTOP)
        placing = {customers.submit(client.post, "/orders", json=ORDER) for _ in range(100)}
        refused = set()
        while len(placing) > 4:
            done, placing = wait(placing, timeout=60, return_when=FIRST_COMPLETED)
            assert done
            refused |= {answer.result().json()["title"] for answer in done}
        assert refused == {"Too many orders at once"}
        assert len(client.get("/orders?customer=ada").json()["orders"]) == 1
        assert client.get("/livez").status_code == 200
        assert not any(answer.done() for answer in placing)
        os.kill(hanging_broker.process.pid, signal.SIGCONT)
        assert {answer.result(120).status_code for answer in placing} == {201}


def test_a_service_that_waits_for_its_database_stops_on_sigterm(environment: dict[str, str], processes: Processes) -> None:
    """The first process of a container ignores SIGTERM unless it says otherwise."""
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
    assert "order_service: told to stop while it started" in process.output()


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
