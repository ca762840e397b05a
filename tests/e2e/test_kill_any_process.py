"""Kills each process with kill -9 while orders are placed, and restores a database. No credit may be lost or duplicated."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from demo.books import ShopBooks
from demo.orders import OrderClient, PlacingOutcome, make_orders, place_all
from demo.processes import PROJECT_ROOT, Process, Processes
from demo.system import System
from service_runtime.failing.armed_failpoints import EXIT_STATUS
from tests.conftest import PROCESSES
from tests.e2e.backups import copied
from tests.e2e.clients import PATIENT
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]
ORDERS = 40
LIMIT_CENTS = 1_000_000
SETTLE_SECONDS = 120


def place(system: System, customer: str, key: str | None = None) -> httpx.Response:
    """Places an order worth two points, and returns the response."""
    body = {"customer": customer, "items": [{"name": "tea", "quantity": 1, "price_cents": 250}]}
    return httpx.post(f"{system.order_url}/orders", json=body, headers={"Idempotency-Key": key} if key else {}, timeout=60)


@dataclass(frozen=True, slots=True)
class Shop:
    """The running system, and the ids of the orders that were confirmed to customers."""

    system: System
    processes: Processes
    placed: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def shop_of_all_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    home = tmp_path_factory.mktemp("shop")
    (home / "failpoints").mkdir()
    settings = {
        "ORDER_SEND_TIMEOUT_MS": str(PATIENT["send_timeout_ms"]),
        "ORDER_FAILPOINTS_FOLDER": str(home / "failpoints"),
    }
    with Processes(home / "logs") as processes:
        system = System(processes, home, order_environment=settings)
        system.start()
        yield Shop(system, processes)
        system.begin_to_stop()


@pytest.fixture
def shop(request: pytest.FixtureRequest, shop_of_all_tests: Shop) -> Shop:
    """Returns the shop of all tests. Its logs are shown if this test fails."""
    request.node.stash[PROCESSES] = shop_of_all_tests.processes
    return shop_of_all_tests


def test_a_lost_commit_is_settled_by_check_back_and_repeating_the_request_orders_nothing_more(shop: Shop) -> None:
    order_service = shop.system.order_service
    Path(order_service.environment["ORDER_FAILPOINTS_FOLDER"], "exit-after-local-commit").write_text("ada")
    with pytest.raises(httpx.TransportError):
        place(shop.system, "ada", key="key-1")
    assert order_service.wait(timeout_s=60) == EXIT_STATUS
    order_service.start()
    again = place(shop.system, "ada", key="key-1")
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    shop.placed.add(again.json()["order"]["order_id"])
    assert_that_each_order_has_one_credit(shop)


@pytest.mark.parametrize("victim", ["broker", "order_service", "credit_service", "worker", "redis"])
def test_kill_during_orders_loses_and_doubles_nothing(shop: Shop, victim: str) -> None:
    system = shop.system
    requests = list(make_orders(ORDERS, refused_every=10, limit_cents=LIMIT_CENTS))
    answered = threading.Semaphore(0)
    killer = threading.Thread(target=_kill_after, args=(answered, ORDERS // 3, getattr(system, victim)))
    killer.start()

    answers, _ = place_all(OrderClient(system.order_url), requests, concurrency=8, on_answer=lambda answer: answered.release())

    killer.join()
    placed = {answer.order_id for answer in answers if answer.outcome is PlacingOutcome.PLACED}
    assert len(placed) == ORDERS - ORDERS // 10
    shop.placed.update(placed)
    assert_that_each_order_has_one_credit(shop)


def test_a_credit_database_that_goes_back_in_time_gets_again_what_it_lacks(shop: Shop, tmp_path: Path) -> None:
    database, backup = shop.system.home / "credits.db", tmp_path / "backup.db"
    copied(database, backup)
    shop.placed.update(place(shop.system, "bob").json()["order"]["order_id"] for _ in range(8))
    assert_that_each_order_has_one_credit(shop)
    copied(backup, database)
    wait_until(
        lambda: (
            "the credit database was reset to an older state" in httpx.get(f"{shop.system.credit_url}/healthz", timeout=30).text
        )
    )
    assert_that_each_order_has_one_credit(shop)


def test_the_judge_finds_nothing_wrong_after_all_kills(shop: Shop) -> None:
    command = [
        sys.executable, "-m", "pipelines", "reconcile", "--engine", "sqlite", "--grace-seconds", "0", "--overdue-seconds", "0",
        "--store", str(shop.system.broker_store), "--output", str(shop.system.home / "reconciliation"),
    ]  # fmt: skip
    environment = {**os.environ, **shop.system.environment}
    judged = subprocess.run(command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert f"consistent: {len(shop.placed)} orders, {len(shop.placed)} credits, 0 lost, 0 doubled" in judged.stdout
    assert_that_each_order_has_one_credit(shop)


def assert_that_each_order_has_one_credit(shop: Shop) -> None:
    with ShopBooks(shop.system.order_database_url, shop.system.credit_database_url) as books:
        _wait_until_settled(books)
        credits = Counter(credit.order_id for credit in books.credits())
        assert set(books.orders()) == shop.placed, "each order is in the database once, whatever its client had to repeat"
        assert credits == Counter(shop.placed), "each order has its credit once, and nothing else has one"


def _kill_after(answered: threading.Semaphore, count: int, process: Process) -> None:
    for _ in range(count):
        answered.acquire(timeout=60)
    process.kill()
    process.start()


def _wait_until_settled(books: ShopBooks) -> None:
    """Waits until every order has its credit, for at most SETTLE_SECONDS."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while books.credited() < books.placed() and time.monotonic() < deadline:
        time.sleep(0.05)
