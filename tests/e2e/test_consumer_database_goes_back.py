"""Databases of consumers go back in time: a restored backup, or an emptied database. What they lack is delivered again.

`pytest -s` prints the table: what went back and how, orders, what the database lacked, what is missing in the end, and attention.
"""

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.processes import Processes
from demo.system import System

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

ITEMS = [{"name": "tea", "quantity": 1, "price_cents": 250}]
BEFORE, SINCE, LATER = 40, 79, 5
SETTLES_S = 60.0


class Consumer:
    """A service that consumes orders, and the SQLite database in which it keeps what it made of them."""

    def __init__(self, system: System, name: str) -> None:
        self.name = name
        self._url = system.credit_url if name == "credit" else system.inventory_url
        self._table = "credits" if name == "credit" else "shipments"
        self.processes = [system.credit_service, system.worker] if name == "credit" else [system.inventory_service]
        self.database = Path(f"{system.home}/{'credits' if name == 'credit' else 'inventory'}.db")

    def orders(self) -> set[str]:
        with closing(sqlite3.connect(self.database, timeout=30)) as connection:
            return {order for (order,) in connection.execute(f"SELECT order_id FROM {self._table}")}

    def positions(self) -> int:
        """The number of messages that its positions cover."""
        with closing(sqlite3.connect(self.database, timeout=30)) as connection:
            (count,) = connection.execute("SELECT sum(next_offset) FROM consumed_positions WHERE topic = 'orders'").fetchone()
            return int(count)

    def attention(self) -> list[str]:
        found: list[str] = httpx.get(f"{self._url}/healthz", timeout=30).json()["attention"]
        return found

    def restart(self, meanwhile: Callable[[], None]) -> None:
        for process in self.processes:
            assert process is not None
            process.kill()
        meanwhile()
        for process in self.processes:
            assert process is not None
            process.start()


def copied(source: Path, target: Path) -> None:
    """By SQLite's backup: into a database that is at work, all of it in one transaction."""
    with closing(sqlite3.connect(source, timeout=30)) as old, closing(sqlite3.connect(target, timeout=30)) as new:
        old.backup(new)


def emptied(database: Path) -> None:
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink()


def wait_until(is_so: Callable[[], Any], timeout_s: float = SETTLES_S) -> bool:
    deadline = time.monotonic() + timeout_s
    while not (so := bool(is_so())) and time.monotonic() < deadline:
        time.sleep(0.2)
    return so


@pytest.mark.parametrize("name", ["credit", "inventory"])
def test_a_consumers_database_that_goes_back_gets_again_what_it_lacks(processes: Processes, tmp_path: Path, name: str) -> None:
    system = System(processes, tmp_path / "system", has_inventory=name == "inventory")
    system.start()
    consumer = Consumer(system, name)
    backup = tmp_path / "backup.db"
    placed: set[str] = set()

    def place(count: int) -> None:
        def one(_: int) -> str:
            answer = httpx.post(f"{system.order_url}/orders", json={"customer": "ada", "items": ITEMS}, timeout=60)
            assert answer.status_code == 201, answer.text
            return str(answer.json()["order"]["order_id"])

        with ThreadPoolExecutor(8) as customers:
            placed.update(customers.map(one, range(count)))
        assert wait_until(lambda: placed <= consumer.orders())
        assert wait_until(lambda: consumer.positions() == len(placed)), "the offsets are not committed"

    place(BEFORE)
    copied(consumer.database, backup)
    goes_back: dict[str, Callable[[], None]] = {
        "restored while the service runs": lambda: copied(backup, consumer.database),
        "restored while the service was stopped": lambda: consumer.restart(lambda: copied(backup, consumer.database)),
        "emptied while the service was stopped": lambda: consumer.restart(lambda: emptied(consumer.database)),
    }
    rows = []
    for how, go_back in goes_back.items():
        place(SINCE)
        assert not rows or wait_until(lambda: placed <= consumer.orders())
        go_back()
        lacks = len(placed - consumer.orders()) if "emptied" not in how else len(placed)
        place_began_s = time.monotonic()
        is_told = wait_until(consumer.attention, 30)
        is_whole = wait_until(lambda: placed <= consumer.orders(), 30)
        rows.append(
            [
                f"{name}: {how}", len(placed), lacks, len(placed - consumer.orders()),
                (consumer.attention() or ["nothing"])[0], f"{time.monotonic() - place_began_s:.0f} s", is_told and is_whole,
            ]
        )  # fmt: skip
        consumer.restart(lambda: None)
        assert wait_until(lambda: consumer.attention() == [], 10), "a database that did not go back is no reason for attention"
    print("\n| what went back | orders | lacked | missing in the end | attention | after | as wanted |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    assert all(row[-1] for row in rows), rows
