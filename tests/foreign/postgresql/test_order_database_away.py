"""Tests that every committed order is credited, even if the order database is unreachable at a check-back."""

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.books import ShopBooks
from demo.ports import free_ports
from demo.processes import Process, Processes, answers
from demo.system import QUICK_CHECKS, System
from service_runtime.failing.armed_failpoints import EXIT_STATUS
from tests.foreign.postgresql.postgres import PostgresServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.postgresql, pytest.mark.timeout(900)]

SILENT_S, REFUSING_S = 30, 30
LOCKED_S = 12
"""Longer than the order service waits for a lock (10 s)."""
ITEMS = [{"name": "tea", "quantity": 1, "price_cents": 250}]


class Orders:
    """Customers who place orders. The databases show the outcome, whatever the order service responded."""

    # Made once the system runs: its ports would be free before.
    def __init__(self, system: System, processes: Processes) -> None:
        self._system = system
        (port,) = free_ports(1)
        self._doomed_url = f"http://127.0.0.1:{port}"
        environment = {
            **system.environment,
            **system.order_service.environment,
            "ORDER_HTTP_PORT": str(port),
            "FAILPOINTS": "exit-after-local-commit:every=1",
        }
        command = [sys.executable, "-m", "order_service"]
        self._doomed: Process = processes.add(
            "doomed_order_service", command, environment=environment, is_ready=answers(f"{self._doomed_url}/healthz")
        )

    def prepare_to_lose_a_commit(self) -> None:
        """Starts another order service of the producer group, which exits between its first local commit and COMMIT."""
        self._doomed.start()

    def place_and_lose_the_commit(self) -> None:
        with pytest.raises(httpx.TransportError):
            self._post(self._doomed_url)
        assert self._doomed.wait(timeout_s=60) == EXIT_STATUS

    def place(self, count: int) -> list[int]:
        return [self._post(self._system.order_url) for _ in range(count)]

    def keep_placing_until(self, end: threading.Event) -> threading.Thread:
        """Starts a thread that places orders until `end` is set and accepts every response."""

        def place() -> None:
            while not end.is_set():
                self.place(1)
                end.wait(0.5)

        customer = threading.Thread(target=place)
        customer.start()
        return customer

    @staticmethod
    def _post(url: str) -> int:
        return httpx.post(f"{url}/orders", json={"customer": "ada", "items": ITEMS}, timeout=90).status_code


def admin(system: System, *arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "rocketmq_broker.admin", "-n", system.namesrv_addr, *arguments, "--json"]
    rows: list[dict[str, Any]] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    return rows


def wait_until_each_order_has_its_credit(system: System, books: ShopBooks) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (books.credited() < books.placed() or admin(system, "pending")):
        time.sleep(0.2)
    credits = Counter(credit.order_id for credit in books.credits())
    assert credits == Counter(dict.fromkeys(books.orders(), 1))
    assert admin(system, "discarded") == []


def test_no_order_loses_its_credit_though_the_order_database_is_silent_and_then_refuses_for_a_minute(
    system: System, processes: Processes, server: PostgresServer
) -> None:
    url = f"{server.url}/postgres"
    system.order_service.environment["ORDER_DATABASE_URL"] = url
    with ShopBooks(url, system.credit_database_url) as books:
        system.start()
        orders, is_over = Orders(system, processes), threading.Event()
        assert set(orders.place(3)) == {201}
        orders.prepare_to_lose_a_commit()
        orders.place_and_lose_the_commit()

        server.freeze()
        customers = [orders.keep_placing_until(is_over) for _ in range(4)]
        time.sleep(SILENT_S)
        waiting = admin(system, "pending")
        server.thaw()
        server.stop()
        time.sleep(REFUSING_S)
        is_over.set()
        server.start()

        for customer in customers:
            customer.join()
        assert waiting, "no transaction had to wait for the database"
        wait_until_each_order_has_its_credit(system, books)


def test_no_order_loses_its_credit_though_another_process_locks_the_order_database(processes: Processes, tmp_path: Path) -> None:
    quick = {**QUICK_CHECKS, "transactionTimeOut": "500", "transactionCheckInterval": "250"}
    system = System(processes, tmp_path, broker_settings=quick)
    with ShopBooks(system.order_database_url, system.credit_database_url) as books:
        system.start()
        orders = Orders(system, processes)
        orders.prepare_to_lose_a_commit()
        other_process = sqlite3.connect(system.order_database_url.removeprefix("sqlite:///"), isolation_level=None)

        orders.place_and_lose_the_commit()
        other_process.execute("BEGIN EXCLUSIVE")
        time.sleep(LOCKED_S)
        other_process.execute("ROLLBACK")

        wait_until_each_order_has_its_credit(system, books)
        assert books.placed() == 1
        other_process.close()
