"""Tests that two order services and two credit services behind one address can be restarted in turn under load."""

import csv
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import pytest

from demo.asking import ask
from demo.books import ShopBooks
from demo.orders import CUSTOMERS
from demo.ports import free_ports
from demo.processes import Process, Processes, accepts_connections, answers, prints
from demo.system import System
from tests.load import PATIENCE_S, CountedRequests, Load
from tests.postgresql_server import new_database
from tests.waiting import wait_until

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.timeout(900),
    pytest.mark.skipif(HAPROXY is None, reason="no haproxy program: apt-get install haproxy"),
]
DRAIN_S = "3"
READERS = 4
REPEATED = {202, 503}
"""Statuses after which a client repeats its request, although no process was killed: not decided yet, or too busy."""
CONFIGURATION = """
defaults
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    timeout check 10s
    option httpchk
    http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost
    # It repeats nothing: a request that a service loses is the client's.
    retries 0
    default-server check inter 200ms fall 1 rise 1

listen orders
    mode http
    bind 127.0.0.1:{orders}
    server order-1 127.0.0.1:{order_1}
    server order-2 127.0.0.1:{order_2}

# It passes connections on, as Kubernetes does, and not requests.
listen credits
    mode tcp
    bind 127.0.0.1:{credits}
    server credit-1 127.0.0.1:{credit_1}
    server credit-2 127.0.0.1:{credit_2}

listen statistics
    mode http
    bind 127.0.0.1:{statistics}
    stats enable
    stats uri /
"""


@dataclass(frozen=True)
class Balancer:
    """HAProxy in front of two order services and two credit services."""

    order_url: str
    credit_url: str
    statistics_url: str

    def is_up(self, server: str) -> bool:
        """Returns True if the server gets requests."""
        return self._row(server)["status"] == "UP"

    def is_out(self, server: str) -> bool:
        """Returns True if the server gets no requests and has none, and no connection that clients keep."""
        row = self._row(server)
        return (row["status"], row["scur"]) == ("DOWN", "0")

    def _row(self, server: str) -> dict[str, str]:
        lines = ask("GET", f"{self.statistics_url}/;csv", timeout_s=30).text.removeprefix("# ").splitlines()
        (row,) = [row for row in csv.DictReader(lines) if row["svname"] == server]
        return row


@dataclass(frozen=True)
class Readers:
    """Customers who read credits during a block, each over one connection for as long as it stays open."""

    url: str
    transport: CountedRequests = field(default_factory=CountedRequests)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Reads until the end of the block. A request that fails is counted, and not repeated."""
        is_over = threading.Event()
        with (
            ThreadPoolExecutor(READERS) as pool,
            httpx.Client(base_url=self.url, transport=self.transport, timeout=60) as client,
        ):
            for _ in range(READERS):
                pool.submit(self._read, client, is_over)
            try:
                yield
            finally:
                is_over.set()

    @staticmethod
    def _read(client: httpx.Client, is_over: threading.Event) -> None:
        while not is_over.wait(0.05):
            with suppress(httpx.TransportError):
                client.get(f"/customers/{CUSTOMERS[0]}/credit")


@dataclass(frozen=True)
class Shop:
    """Two order services, two credit services and two workers, on one database each."""

    orders: tuple[Process, ...]
    credits: tuple[Process, ...]
    workers: tuple[Process, ...]
    books: ShopBooks
    balancer: Balancer

    def restart(self, number: int) -> None:
        """Restarts one service of each kind and a worker, as an orchestrator does.

        Fails if a service ends before all clients have left it.
        """
        services = {f"order-{number}": self.orders[number - 1], f"credit-{number}": self.credits[number - 1]}
        processes = (self.workers[number - 1], *services.values())
        for process in processes:
            process.begin_to_stop()
        for server, service in services.items():
            wait_until(partial(self.balancer.is_out, server), PATIENCE_S)
            assert service.is_running, f"{server} ended before clients had left it"
        for process in processes:
            assert process.wait(PATIENCE_S) == 0
            process.spawn()
        for process in processes:
            process.wait_until_ready(PATIENCE_S)
        for server in services:
            wait_until(partial(self.balancer.is_up, server), PATIENCE_S)


@pytest.fixture
def shop(processes: Processes, tmp_path: Path) -> Iterator[Shop]:
    """Yields a running shop behind HAProxy."""
    order_database, credit_database = new_database(), new_database()
    if order_database is None or credit_database is None:
        pytest.skip("no PostgreSQL: apt-get install postgresql")
    system = System(
        processes,
        tmp_path,
        environment={"ORDER_DATABASE_URL": order_database, "CREDIT_DATABASE_URL": credit_database},
        order_environment={"ORDER_DRAIN_S": DRAIN_S},
        credit_environment={"CREDIT_DRAIN_S": DRAIN_S},
    )
    order_2, credit_2, orders, credits, statistics = free_ports(5)
    twins = [
        twin(processes, system.worker, "credit_service.worker"),
        twin(processes, system.credit_service, "credit_service", port=credit_2),
        twin(processes, system.order_service, "order_service", port=order_2),
    ]
    system.broker.start()
    for process in twins:
        process.spawn()
    system.start_services()
    for process in twins:
        process.wait_until_ready(PATIENCE_S)
    ports = {
        "order_1": port_of(system.order_url),
        "order_2": order_2,
        "credit_1": port_of(system.credit_url),
        "credit_2": credit_2,
    }
    configuration = tmp_path / "haproxy.cfg"
    configuration.write_text(CONFIGURATION.format(orders=orders, credits=credits, statistics=statistics, **ports))
    command = [str(HAPROXY), "-db", "-f", str(configuration)]
    processes.add("haproxy", command, is_ready=accepts_connections(statistics)).start()
    balancer = Balancer(*(f"http://127.0.0.1:{port}" for port in (orders, credits, statistics)))
    for server in ("order-1", "order-2", "credit-1", "credit-2"):
        wait_until(partial(balancer.is_up, server), PATIENCE_S)
    worker_2, credit_service_2, order_service_2 = twins
    with ShopBooks(order_database, credit_database) as books:
        yield Shop(
            (system.order_service, order_service_2),
            (system.credit_service, credit_service_2),
            (system.worker, worker_2),
            books,
            balancer,
        )
    for process in twins:
        process.begin_to_stop()
    system.begin_to_stop()


def twin(processes: Processes, process: Process, module: str, port: int | None = None) -> Process:
    """Adds a second process of a service with the same settings. Without a port it is a worker."""
    environment = dict(process.environment)
    is_ready = prints("worker ready")
    if port is not None:
        environment[f"{module.partition('_')[0].upper()}_HTTP_PORT"] = str(port)
        is_ready = answers(f"http://127.0.0.1:{port}/healthz")
    return processes.add(f"{process.name}-2", [sys.executable, "-m", module], environment=environment, is_ready=is_ready)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_services_behind_one_address_are_restarted_in_turn_and_no_request_is_lost(shop: Shop) -> None:
    load, readers = Load(shop.balancer.order_url), Readers(shop.balancer.credit_url)
    with load.running(), readers.running():
        load.go_on()
        for number in (1, 2):
            shop.restart(number)
            load.go_on()
        print("restarted:", dict(load.transport.outcomes), "credits:", dict(readers.transport.outcomes))
        assert set(load.transport.outcomes) - REPEATED <= {200, 201}
        assert set(readers.transport.outcomes) <= {200, 404}

        shop.orders[0].kill()
        load.go_on()
        shop.orders[0].start()
        wait_until(partial(shop.balancer.is_up, "order-1"), PATIENCE_S)
        load.go_on()
    print("one killed, too:", dict(load.transport.outcomes), f"{len(load.placed)} orders")
    wait_until(lambda: shop.books.credited() >= len(load.placed), PATIENCE_S)
    assert shop.books.orders().keys() == set(load.placed)
    assert Counter(credit.order_id for credit in shop.books.credits()) == Counter(load.placed)
