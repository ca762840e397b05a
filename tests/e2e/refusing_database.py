"""Real processes whose credit or inventory database refuses rows; as a program, the table of each fault and what it cost.

python -m tests.e2e.refusing_database                    # each fault, on SQLite and on PostgreSQL where that is installed
python -m tests.e2e.refusing_database sqlite "missing"   # one kind of database, and the faults with this word
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import Engine, text

from credit_service.adapters.tables import MIGRATIONS as CREDIT_TABLES
from demo.processes import Processes
from demo.system import System
from inventory_service.adapters.tables import MIGRATIONS as INVENTORY_TABLES
from service_runtime.database.opening import open_database
from tests.database_rules import Rule, rules, service_url
from tests.e2e.clients import PATIENT
from tests.postgresql_server import new_database

LARGEST_POINTS = 100
LARGEST_QUANTITY = 5
_HEADS = (
    "database",
    "fault",
    "orders",
    "passed",
    "dead letters",
    "told by",
    "passed after the mend",
    "after the command",
    "lost",
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a fault cost: orders that passed, and dead letters, during it, after the mend and after the one command."""

    orders: int
    passed: int
    dead_letters: int
    health: tuple[int, str, str]
    """HTTP status, status and cause of what is held, while the fault lasts."""
    passed_after_mend: int
    would_come_back: int
    passed_after_command: int

    @property
    def lost(self) -> int:
        return self.orders - self.passed_after_command


class RefusedShop:
    """All services, and their databases as their owner reaches them."""

    def __init__(self, processes: Processes, home: Path, kind: str) -> None:
        self.system = System(processes, home, has_inventory=True)
        self._owners: dict[str, Engine] = {}
        assert self.system.inventory_service is not None
        urls = {"credit": self.system.credit_database_url, "inventory": f"sqlite:///{home}/inventory.db"}
        for name, migrations in (("credit", CREDIT_TABLES), ("inventory", INVENTORY_TABLES)):
            url = urls[name] if kind == "sqlite" else new_database()
            if url is None:
                raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
            self._owners[name] = open_database(url, migrations=migrations, start_timeout_s=30)
            variable = f"{name.upper()}_DATABASE_URL"
            for process in (self.system.worker, self.system.credit_service, self.system.inventory_service):
                process.environment[variable] = service_url(url)
        self.system.order_service.environment["ORDER_SEND_TIMEOUT_MS"] = str(PATIENT["send_timeout_ms"])
        self._items = 0

    def start(self) -> None:
        self.system.start()
        httpx.put(f"{self.system.inventory_url}/stock/tea", json={"available": 10**9}, timeout=60).raise_for_status()

    def close(self) -> None:
        for engine in self._owners.values():
            engine.dispose()

    def rules(self, service: str) -> dict[str, Rule]:
        dialect = self._owners[service].dialect.name
        if service == "credit":
            narrow = "ALTER TABLE credits ALTER COLUMN message_id TYPE {0} USING left(message_id, 1)"
            return rules(dialect, "credits", "points", LARGEST_POINTS, too_narrow=narrow)
        narrow = "ALTER TABLE shipment_lines ALTER COLUMN article TYPE {0} USING left(article, 1)"
        return rules(dialect, "shipment_lines", "quantity", LARGEST_QUANTITY, too_narrow=narrow)

    def play(self, service: str, rule: Rule, *, orders: int) -> Cost:
        """One fault: orders under it, the mend, and the one command."""
        before = self._rows(service)
        rule.is_set_up(self._owners[service])
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(self._order, range(orders)))

        def passed() -> int:
            return self._rows(service) - before

        def is_settled() -> bool:
            """Whether all that are missing are dead letters; one that none followed is held until another order passes."""
            nonlocal orders
            if passed():
                self._order(1)
                orders += 1
                return self.dead_letters(service) >= orders - passed() and passed() > 1
            held = self.health(service).get("held") or {}
            return int(held.get("orders", held.get("messages", 0))) >= 4

        _until(is_settled, 60)
        first, seen = passed(), self.health(service)
        rule.is_mended(self._owners[service])
        dead = self.dead_letters(service)
        _until(lambda: passed() >= orders - dead, 90)
        mended, dead = passed(), self.dead_letters(service)
        would = self._retry(service, "--dry-run")
        self._retry(service)
        _until(lambda: passed() >= orders, 60)
        self._retry(service)
        held = seen.get("held") or {}
        return Cost(orders, first, dead, (seen["http"], seen["status"], held.get("cause", "-")), mended, would, passed())

    def health(self, service: str) -> dict[str, Any]:
        url = self.system.credit_url if service == "credit" else self.system.inventory_url
        answer = httpx.get(f"{url}/healthz", timeout=60)
        return {**answer.json(), "http": answer.status_code}

    def dead_letters(self, service: str) -> int:
        rows = json.loads(self._tool("dead-letters", "list", f"{service}_service", "--limit", "1000", "--json").stdout or "[]")
        return len(rows)

    def points_are_their_sum(self) -> bool:
        with self._owners["credit"].connect() as connection:
            entries, balances = (
                connection.execute(text(f"SELECT coalesce(sum(points), 0) FROM {table}")).scalar_one()
                for table in ("credits", "balances")
            )
        return bool(entries == balances)

    def _retry(self, service: str, *more: str) -> int:
        done = self._tool("dead-letters", "retry", "--group", f"{service}_service", "--all", *more)
        return sum((":" in line and " goes to " in line) or " would go to " in line for line in done.stdout.splitlines())

    def _tool(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "rocketmq_broker.admin", "--namesrv-addr", self.system.namesrv_addr, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def _order(self, number: int) -> None:
        """Every fourth is a large one, which rules of `some` refuse."""
        quantity = 1 if number % 4 else LARGEST_QUANTITY + 1
        items = [{"name": "tea", "quantity": quantity, "price_cents": 2000}]
        body = {"customer": f"customer-{number % 7}", "items": items}
        httpx.post(f"{self.system.order_url}/orders", json=body, timeout=60).raise_for_status()

    def _rows(self, service: str) -> int:
        """Orders that passed; none while their table is missing."""
        table = "credits" if service == "credit" else "shipments"
        with self._owners[service].connect() as connection:
            try:
                return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())
            except Exception:
                connection.rollback()
                return int(connection.execute(text("SELECT count(*) FROM gone")).scalar_one())


@contextmanager
def refused_shop(processes: Processes, home: Path, kind: str) -> Iterator[RefusedShop]:
    """A shop that has started."""
    shop = RefusedShop(processes, home, kind)
    try:
        shop.start()
        yield shop
    finally:
        shop.close()


def _until(is_so: Callable[[], bool], timeout_s: float) -> None:
    """Waits; who measures what was lost goes on then."""
    deadline_s = time.monotonic() + timeout_s
    while not is_so() and time.monotonic() < deadline_s:
        time.sleep(0.5)


def main(arguments: list[str]) -> None:
    kinds = [arguments[0]] if arguments else ["sqlite", "postgresql"]
    word = arguments[1] if len(arguments) > 1 else ""
    print(" | ".join(_HEADS), flush=True)
    for kind in kinds:
        with (
            tempfile.TemporaryDirectory() as folder,
            Processes(Path(folder) / "logs") as processes,
            refused_shop(processes, Path(folder), kind) as shop,
        ):
            for service in ("credit", "inventory"):
                for name, rule in shop.rules(service).items():
                    if word not in f"{service}: {name}" or (service == "inventory" and "drops the row" in name):
                        continue
                    cost = shop.play(service, rule, orders=40)
                    print(_row(kind, f"{service}: {name}", cost), flush=True)
            print(f"{kind}: balances are the sum of their entries: {shop.points_are_their_sum()}", flush=True)


def _row(kind: str, fault: str, cost: Cost) -> str:
    http, status, cause = cost.health
    told = f"/healthz {http} {status}, held: {cause}"
    columns = (kind, fault, cost.orders, cost.passed, cost.dead_letters, told, cost.passed_after_mend, cost.passed_after_command)
    return " | ".join(str(column) for column in (*columns, cost.lost))


if __name__ == "__main__":
    main(sys.argv[1:])
