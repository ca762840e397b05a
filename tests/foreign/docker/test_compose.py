"""Builds and runs docker-compose.yml, and tests the system with PostgreSQL and Redis, and then with Apache RocketMQ.

The tests share one system, and each continues from the state that the previous test left. They run in the order of
this file.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from demo.orders import PlacingOutcome
from tests.foreign.docker.compose_customers import ORDER_URL, is_ready, order, place_orders
from tests.foreign.docker.compose_project import EVERYTHING, PORTS, SECRETS, Compose, authorization, password_of, settled
from tests.one_at_a_time import one_at_a_time
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(7200)]
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

INVENTORY_URL = f"http://127.0.0.1:{PORTS['INVENTORY_PORT']}"
CONTAINERS = (
    "order-database",
    "credit-database",
    "inventory-database",
    "redis",
    "broker",
    "order-service",
    "credit-worker",
    "credit-service",
    "inventory-service",
)
"""What is killed, one after the other."""
PLACED_AT_A_TIME = 24


@pytest.fixture(scope="module")
def compose(docker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    """Builds and starts the system. Stops it after the last test, and removes its volumes."""
    secrets = tmp_path_factory.mktemp("secrets")
    for secret in SECRETS:
        (secrets / secret).write_text(password_of(secret))
        (secrets / secret).chmod(0o644)
    running = Compose(docker, secrets)
    down = [*EVERYTHING, "down", "-v", "--remove-orphans"]
    with one_at_a_time("compose"):
        try:
            running.run(*down)  # what a broken-off run left would be counted as well
            # One service for each image: the others would build it once more.
            running.must("--profile", "demo", "build", "-q", "order-service", "console", "demo", timeout_s=2400)
            running.must("up", "-d", "--no-build", timeout_s=600)
            yield running
        finally:
            running.run(*down, "-t", "2")


def test_the_demo_ends_consistent_on_postgresql(compose: Compose) -> None:
    said = compose.must("run", "--rm", "demo", timeout_s=3000)
    assert "380 orders placed and 20 refused" in said
    assert "consistent: 380 orders, 380 credits, 0 lost, 0 doubled" in said
    credit = httpx.get(f"http://127.0.0.1:{PORTS['CREDIT_PORT']}/customers/customer-01/credit", timeout=30)
    assert credit.json()["points"] > 0


def test_only_the_http_ports_are_published_and_only_on_loopback(compose: Compose) -> None:
    bindings = [
        (binding["HostIp"], binding["HostPort"])
        for container in compose.containers().values()
        for published in container["NetworkSettings"]["Ports"].values()
        for binding in published or ()
    ]
    assert sorted(bindings) == [("127.0.0.1", port) for port in ("18080", "18081", "18088")]


def test_our_processes_run_without_privileges(compose: Compose) -> None:
    containers = compose.containers()
    ours = [each for each in containers.values() if each["Config"]["Image"] == "transactional-messages"]
    assert len(ours) == 4
    assert {(each["Config"]["User"], each["HostConfig"]["ReadonlyRootfs"]) for each in ours} == {("10001:10001", True)}
    assert containers["redis"]["Config"]["User"] == "10001:10001"
    for each in containers.values():
        assert each["HostConfig"]["CapDrop"] == ["ALL"]
        assert "no-new-privileges:true" in each["HostConfig"]["SecurityOpt"]


def test_no_container_can_write_to_its_image(compose: Compose) -> None:
    for service, container in compose.containers().items():
        assert container["HostConfig"]["ReadonlyRootfs"], service


def test_each_container_has_bounds(compose: Compose) -> None:
    for service, container in compose.containers().items():
        assert container["HostConfig"]["LogConfig"]["Config"] == {"max-file": "5", "max-size": "10m"}, service
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
    admin = ("python", "-m", "rocketmq_broker.admin")
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


@pytest.mark.release
def test_the_health_of_a_worker_is_its_own(compose: Compose) -> None:
    _, patiently, *check = compose.containers()["credit-worker"]["Config"]["Healthcheck"]["Test"]
    assert patiently == "check-patiently"
    grown = compose.run("up", "-d", "--no-recreate", "--scale", "credit-worker=2", "credit-worker")
    assert grown.returncode == 0, grown.stdout
    stopped, running = compose.ids("credit-worker")
    for each in (stopped, running):
        wait_until(lambda each=each: compose.docker("exec", each, *check).returncode == 0)
    compose.docker("kill", "--signal", "STOP", stopped)
    try:
        # Another worker answers, and that must not count.
        wait_until(lambda: compose.docker("exec", stopped, *check).returncode != 0)
        assert compose.docker("exec", running, *check).returncode == 0
    finally:
        compose.docker("kill", "--signal", "CONT", stopped)
        compose.run("up", "-d", "--no-recreate", "--scale", "credit-worker=1", "credit-worker")


def test_containers_that_are_well_are_asked_every_20_s(compose: Compose) -> None:
    def longest_check_s(container: Mapping[str, Any]) -> float:
        checks = container["State"]["Health"]["Log"]
        return max((moment(check["End"]) - moment(check["Start"])).total_seconds() for check in checks)

    moment = datetime.fromisoformat
    wait_until(
        lambda: all(longest_check_s(compose.containers()[name]) >= 20 for name in ("redis", "order-database", "order-service"))
    )
    states = {compose.containers()[name]["State"]["Health"]["Status"] for name in ("redis", "order-database", "order-service")}
    assert states == {"healthy"}


def test_the_console_shows_the_broker_to_who_knows_its_password(compose: Compose) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{PORTS['CONSOLE_PORT']}", follow_redirects=True, timeout=30) as browser:
        assert browser.get("/groups").url.path == "/login"
        token = re.findall(r'name="csrf" value="([^"]+)"', browser.get("/login").text)[0]
        browser.post("/login", data={"csrf": token, "password": password_of("console")}).raise_for_status()
        wait_until(lambda: "credit_service" in browser.get("/groups").text)


def test_an_order_without_the_key_is_refused(compose: Compose) -> None:
    answer = httpx.post(f"{ORDER_URL}/orders", json={}, timeout=30)
    assert (answer.status_code, answer.json()["title"]) == (401, "API key missing")
    assert httpx.post(f"{ORDER_URL}/orders", json={}, headers=authorization("order-api-key"), timeout=30).status_code == 400


def ship_and_cancel(compose: Compose) -> None:
    """Starts the inventory service with three of a good, and orders two and two: the first is shipped, the second cancelled."""
    compose.must("--profile", "inventory", "up", "-d", "--no-build")
    wait_until(lambda: is_ready(INVENTORY_URL))
    stock = f"{INVENTORY_URL}/stock/tea"
    assert httpx.put(stock, json={"available": 3}, timeout=30).status_code == 401
    httpx.put(stock, json={"available": 3}, headers=authorization("inventory-api-key"), timeout=30).raise_for_status()
    shipped = order("tea", 2)
    wait_until(lambda: httpx.get(f"{INVENTORY_URL}/orders/{shipped}/shipment", timeout=30).is_success)
    short = order("tea", 2)
    wait_until(lambda: httpx.get(f"{ORDER_URL}/orders/{short}", timeout=30).json()["state"] == "CANCELLED")
    assert httpx.get(stock, timeout=30).json()["available"] == 1


def test_inventory_ships_what_there_is_and_has_the_rest_cancelled(compose: Compose) -> None:
    ship_and_cancel(compose)
    books = settled(compose)
    assert (books.lost, books.doubled) == (0, 0)


def test_any_container_may_be_killed_and_no_order_or_credit_is_lost_or_doubled(
    compose: Compose, capsys: pytest.CaptureFixture[str]
) -> None:
    """No order or credit is lost or doubled if one container of the system is killed while orders are placed.

    The system includes the inventory service. Prints a line for each killed container.
    """
    told = [f"{'killed':20}{'orders placed':>15}{'asked again':>13}{'lost':>6}{'doubled':>9}  verdict"]
    for service in CONTAINERS:
        before = settled(compose).orders
        answers = place_orders(PLACED_AT_A_TIME, after_a_third=partial(compose.kill, service))
        books = settled(compose)
        again = sum(answer.attempts > 1 for answer in answers)
        placed = {answer.order_id for answer in answers if answer.outcome is PlacingOutcome.PLACED}
        is_consistent = books.orders - before == len(placed) == PLACED_AT_A_TIME and not books.lost and not books.doubled
        verdict = "consistent" if is_consistent else "NOT CONSISTENT"
        told.append(f"{service:20}{len(placed):15}{again:13}{books.lost:6}{books.doubled:9}  {verdict}")
    with capsys.disabled():
        print("", *told, sep="\n")
    assert not [line for line in told if "NOT CONSISTENT" in line]


@pytest.mark.release
def test_a_spark_cluster_finds_them_consistent_as_well(compose: Compose) -> None:
    ship_and_cancel(compose)
    assert settled(compose).lost == 0
    judge = ("--profile", "spark", "run", "--rm", "reconciliation", "--grace-seconds", "0", "--overdue-seconds", "0")
    said = compose.must(*judge, timeout_s=1800)
    assert "0 lost, 0 doubled" in said
    assert "reversed" in said
    assert "Asked to launch executor" in compose.run("logs", "--no-color", "spark-worker").stdout


def test_all_stop_in_the_time_they_are_given(compose: Compose) -> None:
    """Each container exits before Docker kills it. No container is running after this test."""
    done = compose.run(*EVERYTHING, "stop", timeout_s=600)
    assert done.returncode == 0, done.stdout
    codes = {service: container["State"]["ExitCode"] for service, container in compose.containers().items()}
    assert KILLED not in codes.values(), codes


def test_apache_rocketmq_takes_the_store_over_and_the_same_services_lose_nothing(compose: Compose) -> None:
    """Apache RocketMQ opens the broker's store, and no order or credit is lost or doubled.

    The order service exits several times between local commit and COMMIT, so that Apache's broker sends check-backs.
    This must be the last test of the file.
    """
    image = "apache/rocketmq:4.9.7"
    if compose.docker("image", "inspect", image).returncode and compose.docker("pull", image).returncode:
        pytest.skip(f"no image {image}: tests/foreign/docker/images/build makes a stand-in for it")
    with_apache = compose.with_apache(FAILPOINTS="exit-after-local-commit:every=8")
    with_apache.must("build", "-q", "broker", timeout_s=1200)
    with_apache.must("up", "-d", "--no-build", timeout_s=600)
    wait_until(lambda: is_ready(ORDER_URL))
    before = settled(compose).orders
    place_orders(PLACED_AT_A_TIME)
    books = settled(compose)
    assert (books.orders - before, books.lost, books.doubled) == (PLACED_AT_A_TIME, 0, 0)
    assert "org.apache.rocketmq.broker.BrokerStartup" in compose.execute("broker", "cat", "/proc/1/cmdline").stdout
    assert compose.containers()["order-service"]["RestartCount"] >= 2
