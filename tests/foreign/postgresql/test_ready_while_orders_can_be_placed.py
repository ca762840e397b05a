"""Tests that /readyz and the response to an order agree under each fault: 200 and 201, or 503 and 503.

No placed order is lost. `pytest -s` prints the table: fault, orders placed, credits, lost orders, and the parts that
/readyz reported.
"""

import contextlib
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import httpx
import psycopg
import pytest

from demo.ports import free_ports
from demo.processes import Process, Processes, prints
from demo.system import QUICK_CHECKS, System, add_broker
from tests.e2e.disks import Disk, mounted
from tests.postgresql_server import new_database

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

ORDER = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 100}]}
SOON_S = 30.0


class Shop:
    """The whole system with its own name server, on one kind of database. Its stores are on a small disk."""

    def __init__(self, processes: Processes, home: Path, disk: Disk, databases: tuple[str, str] | None) -> None:
        """Creates a system that is not started. `databases` are the URLs of the order database and the credit database.

        If `databases` is None, both are SQLite files, and the order database is on the small disk.
        """
        (namesrv_port, broker_port) = free_ports(2)
        namesrv_addr = f"127.0.0.1:{namesrv_port}"
        self.disk = disk
        self.order_url, credit_url = databases or (f"sqlite:///{disk.root}/orders.db", f"sqlite:///{home}/credits.db")
        self.system = System(
            processes,
            home,
            namesrv_addr=namesrv_addr,
            order_environment={"ORDER_DATABASE_URL": self.order_url, "ORDER_SEND_TIMEOUT_MS": "3000"},
            credit_environment={"CREDIT_DATABASE_URL": credit_url},
        )
        command = [
            sys.executable,
            "-m",
            "rocketmq_broker.nameserver",
            "-p",
            str(namesrv_port),
            "--kv-config",
            str(home / "kv.json"),
        ]
        self.name_server = processes.add("name_server", command, is_ready=prints("boot success"))
        store = home / "broker" if databases is None else disk.root
        settings = {
            **QUICK_CHECKS,
            "namesrvAddr": namesrv_addr,
            "listenPort": str(broker_port),
            "mapedFileSizeCommitLog": str(1 << 20),
            "mapedFileSizeConsumeQueue": str(20 * 1000),
            "maxHashSlotNum": "1000",
            "maxIndexNum": "10000",
            "cleanResourceInterval": "1000",
        }
        self.broker = add_broker(processes, store, settings)
        self.client = httpx.Client(base_url=self.system.order_url, timeout=60)
        self.placed: list[str] = []

    def start(self) -> None:
        self.name_server.start()
        self.broker.start()
        self.system.start_services()

    def place(self) -> int:
        """Places an order. Returns the response status."""
        answer = self.client.post("/orders", json=ORDER)
        if answer.status_code == 201:
            self.placed.append(answer.headers["Location"].rpartition("/")[2])
        return answer.status_code

    def readiness(self) -> tuple[int, list[str]]:
        """Returns the status of /readyz and the names of the missing parts."""
        answer = self.client.get("/readyz")
        return answer.status_code, [error["field"] for error in answer.json().get("errors", ())]

    def uncredited(self) -> list[str]:
        return [each for each in self.placed if not httpx.get(f"{self.system.credit_url}/orders/{each}/credit").is_success]


@contextlib.contextmanager
def locked(shop: Shop) -> Iterator[None]:
    """Holds a writer's locks on the order database from another connection."""
    if shop.order_url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(shop.order_url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
    else:
        with connected(shop) as other_connection, other_connection.transaction():
            other_connection.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
            yield


@contextlib.contextmanager
def read_only(shop: Shop) -> Iterator[None]:
    """Makes the database read-only, like a standby that is not promoted yet."""
    with connected(shop) as connection:
        for value in ("on", "off"):
            connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}".encode())
            connection.execute("SELECT pg_reload_conf()")
            if value == "on":
                yield
                connection.execute("SET default_transaction_read_only = off")


@contextlib.contextmanager
def full(shop: Shop) -> Iterator[None]:
    """Fills the disk of the order database or of the broker."""
    shop.disk.fill()
    yield
    shop.disk.free()


def stopped(process_of: Callable[[Shop], Process]) -> Callable[[Shop], AbstractContextManager[None]]:
    @contextlib.contextmanager
    def hanging(shop: Shop) -> Iterator[None]:
        pid = process_of(shop).pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    return hanging


@contextlib.contextmanager
def without_name_server(shop: Shop) -> Iterator[None]:
    shop.name_server.kill()
    yield
    shop.name_server.start()


def connected(shop: Shop) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(shop.order_url.replace("+psycopg", ""), autocommit=True)


T = TypeVar("T")
Fault = tuple[str, Callable[[Shop], AbstractContextManager[None]], list[str]]
OF_BOTH: list[Fault] = [
    ("name server away", without_name_server, []),
    ("name server hangs", stopped(lambda shop: shop.name_server), []),
    ("broker hangs", stopped(lambda shop: shop.broker), ["broker"]),
]
FAULTS: dict[str, list[Fault]] = {
    "sqlite": [
        *OF_BOTH,
        ("database locked by another program", locked, ["database"]),
        ("disk of the database full", full, ["database"]),
    ],
    "postgresql": [
        *OF_BOTH,
        ("table locked by another program", locked, ["database"]),
        ("database read-only", read_only, ["database"]),
        ("disk of the broker full", full, ["broker"]),
    ],
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    yield from mounted(tmp_path, "-t", "tmpfs", "-o", "size=48m", "tmpfs")


@pytest.mark.parametrize("kind", FAULTS)
def test_a_service_is_ready_exactly_while_orders_can_be_placed(
    processes: Processes, tmp_path: Path, disk: Disk, kind: str
) -> None:
    databases = None
    if kind == "postgresql":
        orders, credits_ = new_database(), new_database()
        if orders is None or credits_ is None:
            pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
        databases = orders, credits_
    shop = Shop(processes, tmp_path / "home", disk, databases)
    shop.start()
    assert (shop.place(), shop.readiness()) == (201, (200, []))  # the topic is made, and the name server dies soon
    rows = []
    for name, fault, expected in FAULTS[kind]:
        with fault(shop):
            wanted = (503 if expected else 200, expected)
            seen = until(shop.readiness, wanted)
            statuses = [shop.place() for _ in range(3)]
            rows.append([name, statuses, *seen])
            assert seen == wanted, rows
            # A full disk takes what fits into pages that SQLite's log has already: then an order is placed, or 202 for now.
            assert statuses == [503 if expected else 201] * 3 or (fault is full and statuses[0] != 201), rows
        assert until(shop.readiness, (200, [])) == (200, []), rows
        assert until(shop.place, 201) == 201, rows
    lost = until(shop.uncredited, [])
    print(f"\n| {kind}: fault | 3 orders | readyz | missing |\n| --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(f"{len(shop.placed)} orders placed, {len(shop.placed) - len(lost)} credits, {len(lost)} lost")
    assert lost == []


def until(ask: Callable[[], T], wanted: T) -> T:
    """Repeats `ask` until it returns `wanted`, for at most SOON_S seconds. Returns the last result."""
    end_s = time.monotonic() + SOON_S
    while (answer := ask()) != wanted and time.monotonic() < end_s:
        time.sleep(0.2)
    return answer
