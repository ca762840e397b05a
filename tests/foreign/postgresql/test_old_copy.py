"""Tests that an order service on an old copy of its database rolls back no order and reports the fault.

With the original database, the service then decides all pending transactions.

`python -m pytest tests/foreign/postgresql/test_old_copy.py -rP` prints the table:
fault, orders, credits, lost orders, and the reporters of the fault.
"""

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine, text

from demo.books import ShopBooks
from demo.system import System
from service_runtime.database.database_url import parse_database_url
from tests.e2e.backups import copied
from tests.foreign.postgresql.postgres import PostgresServer, binaries

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

ITEMS = [{"name": "tea", "quantity": 1, "price_cents": 250}]
LOST_COMMITS = 4


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(system: System, kind: str, request: pytest.FixtureRequest) -> "Shop":
    if kind == "SQLite":
        return Shop(system, system.order_database_url, f"sqlite:///{system.home}/copy.db", copy_sqlite)
    running: PostgresServer = request.getfixturevalue("server")
    return Shop(system, f"{running.url}/postgres", f"{running.url}/copy", copy_postgresql)


def copy_sqlite(original: str, copy: str) -> None:
    copied(*(Path(url.removeprefix("sqlite:///")) for url in (original, copy)))


def copy_postgresql(original: str, copy: str) -> None:
    """Copies a running database with pg_dump, as backups do."""
    programs = binaries()
    assert programs is not None
    source, target = (url.replace("postgresql+psycopg", "postgresql") for url in (original, copy))
    run = {"check": True, "capture_output": True, "timeout": 120}
    subprocess.run([programs / "psql", source, "-c", f"CREATE DATABASE {parse_database_url(copy).database}"], **run)  # type: ignore[call-overload]
    dump = subprocess.run([programs / "pg_dump", source], **run)  # type: ignore[call-overload]
    subprocess.run([programs / "psql", "-q", target], input=dump.stdout, **run)  # type: ignore[call-overload]


class Shop:
    """The system, whose order service can be moved to a copy of its database and back."""

    def __init__(self, system: System, original: str, copy: str, make_copy: Callable[[str, str], None]) -> None:
        self.system = system
        self.original, self.copy, self._make_copy = original, copy, make_copy
        self._failpoints = system.home / "failpoints"
        self._failpoints.mkdir()
        system.order_service.environment.update(ORDER_DATABASE_URL=original, ORDER_FAILPOINTS_FOLDER=str(self._failpoints))

    def take_copy(self) -> None:
        """Copies the database. In the copy, every payment deadline has passed."""
        self._make_copy(self.original, self.copy)
        engine = create_engine(parse_database_url(self.copy))
        with engine.begin() as connection:
            connection.execute(text("UPDATE orders SET pay_until_ms = 1 WHERE pay_until_ms IS NOT NULL"))
        engine.dispose()

    def move_to(self, url: str) -> None:
        """Kills the order service, and starts it on the database at `url`, in the same producer group.

        On the copy, the service does not become ready.
        """
        self.system.order_service.kill()
        self.system.order_service.environment["ORDER_DATABASE_URL"] = url
        self.system.order_service.spawn()
        assert wait_until(self._is_alive)

    def place(self, customer: str, payment: str = "now") -> Any:
        return self._post("/orders", {"customer": customer, "items": ITEMS, "payment": payment})["order"]["order_id"]

    def place_and_lose_the_commit(self, customer: str) -> str:
        """Places an order whose COMMIT is never sent. Returns its transaction id."""
        self._lose_the_commit_for(customer)
        answer = self._post("/orders", {"customer": customer, "items": ITEMS})
        return str(answer["transaction"]["transaction_id"])

    def cancel_and_lose_the_commit(self, order_id: str, customer: str) -> None:
        self._lose_the_commit_for(customer)
        self._post(f"/orders/{order_id}/cancellation", {})

    def pay(self, order_id: str) -> None:
        self._post(f"/orders/{order_id}/payment", {})

    def doubts(self) -> list[str]:
        """Returns the faults of the database's history in /healthz. The service refuses orders while there are any."""
        missing: list[str] = httpx.get(f"{self.system.order_url}/healthz", timeout=30).json()["missing"]
        return [one for one in missing if one.startswith("history: ")]

    def ask_for_an_order(self) -> tuple[int, int]:
        """Places an order. Returns the statuses of /readyz and of the order."""
        order = httpx.post(f"{self.system.order_url}/orders", json={"customer": "eve", "items": ITEMS}, timeout=60)
        return httpx.get(f"{self.system.order_url}/readyz", timeout=30).status_code, order.status_code

    def _is_alive(self) -> bool:
        try:
            return httpx.get(f"{self.system.order_url}/livez", timeout=30).is_success
        except httpx.TransportError:
            return False

    def _lose_the_commit_for(self, customer: str) -> None:
        (self._failpoints / "lose-commit").write_text(customer)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = httpx.post(f"{self.system.order_url}{path}", json=body, timeout=60)
        assert answer.is_success, answer.text
        return answer.json()


def wait_until(is_so: Callable[[], bool], timeout_s: float = 60) -> bool:
    deadline = time.monotonic() + timeout_s
    while not (so := is_so()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return so


def test_an_order_service_on_an_old_copy_of_its_database_gives_no_order_up(shop: Shop, kind: str) -> None:
    system = shop.system
    with ShopBooks(shop.original, system.credit_database_url) as books:
        system.start()
        with ThreadPoolExecutor(8) as customers:
            list(customers.map(shop.place, ["ada"] * 20))
            known = shop.place("known")
            paid = shop.place("paid", "later")
            shop.take_copy()
            list(customers.map(shop.place, ["bob"] * 20))
        waiting = [shop.place_and_lose_the_commit(f"lost-{number}") for number in range(LOST_COMMITS)]
        shop.cancel_and_lose_the_commit(known, "known")
        shop.pay(paid)
        shop.move_to(shop.copy)
        moved = time.monotonic()

        is_told = wait_until(lambda: bool(shop.doubts()))
        told_after_s = time.monotonic() - moved
        log = system.order_service.output
        wait_until(lambda: all(log().count(f"check-back of transaction {transaction}") > 1 for transaction in waiting))
        doubts = shop.doubts()

        ready, order = shop.ask_for_an_order()

        shop.move_to(shop.original)
        expected = books.placed() + 1
        wait_until(lambda: books.credited() >= expected)
        credited = {credit.order_id for credit in books.credits()}
        lost = [order for order in books.orders() if order not in credited]
        reversals = books.credited() - len(credited)
        who = f"the order service: {doubts[0]}" if doubts else "nobody"
        print("fault | orders | credits | reversals | lost | told by whom")
        print(f"old copy of {kind} | {books.placed()} | {len(credited)} | {reversals} | {len(lost)} | {who}")
        print(f"told {told_after_s:.1f} s after the start on the copy: {is_told}")
        assert (lost, reversals) == ([], 1)
        assert is_told
        assert (ready, order) == (503, 503), "an old copy took an order"
        assert wait_until(lambda: shop.doubts() == []), shop.doubts()
