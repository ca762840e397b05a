"""Tests of a failover of both databases under load: the primary is killed, and its standby is promoted.

A synchronous standby has all that was acknowledged. An asynchronous one that lags has not: the test shows what is lost, what
reports it, and what repairs it. docs/scale.md has the results and the settings. `pytest -s` prints the numbers.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from demo.books import CREDIT_DATABASE, ORDER_DATABASE, database, rows_of
from demo.processes import Processes
from demo.system import System
from tests.foreign.postgresql.postgres import PASSWORD_IN_URL, PostgresServer, binaries, running_postgres
from tests.foreign.spark.test_reconcile_command import pipelines
from tests.load import Load, place_unpaid, post
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.timeout(900),
    pytest.mark.skipif(binaries() is None, reason="no PostgreSQL in /usr/lib/postgresql: apt-get install postgresql"),
]

SYNCHRONOUS = "-c synchronous_commit=on -c synchronous_standby_names=walreceiver"
"""Options of a primary. Its standby does not get them: once it is promoted, it has no standby that it could wait for."""
ASYNCHRONOUS = ""
ORDER = {"customer": "eve", "items": [{"name": "tea", "quantity": 1, "price_cents": 250}]}
RESET = "was reset to an older state"
"""What the credit service reports."""
OLD_COPY = "the order database is an old copy"
"""What an order service reports at its start."""


@dataclass(frozen=True)
class Pair:
    """A primary and its standby, which receives the log by streaming replication."""

    primary: PostgresServer
    standby: PostgresServer

    @property
    def url(self) -> str:
        """The URL of both. libpq connects to the one that accepts writes."""
        hosts = "&".join(f"host=127.0.0.1:{server.port}" for server in (self.primary, self.standby))
        return f"postgresql://shop:{PASSWORD_IN_URL}@/postgres?{hosts}&target_session_attrs=read-write"

    def fail_over(self) -> None:
        self.primary.kill()
        self.standby.promote()


@contextmanager
def pair(options: str) -> Iterator[Pair]:
    programs = binaries()
    assert programs is not None
    with running_postgres(programs, options=options) as primary, running_postgres(programs, primary) as standby:
        wait_until(lambda: primary.has_standby)
        yield Pair(primary, standby)


@dataclass(frozen=True)
class Shop:
    """The running services, their databases, and customers who place orders."""

    system: System
    order_database: Pair
    credit_database: Pair
    order_rows: Engine
    credit_rows: Engine
    load: Load

    def orders(self) -> set[str]:
        """Returns the ids of the stored orders."""
        return {order_id for (order_id,) in rows_of(self.order_rows, "SELECT order_id FROM orders")}

    def entries(self) -> dict[str, list[str]]:
        """Returns the kinds of the ledger's entries by order, oldest first."""
        entries: dict[str, list[str]] = {}
        for order_id, kind in rows_of(self.credit_rows, "SELECT order_id, kind FROM credits ORDER BY id"):
            entries.setdefault(order_id, []).append(kind)
        return entries

    def is_each_placed_order_credited(self) -> bool:
        return set(self.load.placed) <= self.entries().keys()

    def readiness(self, url: str) -> httpx.Response:
        return httpx.get(f"{url}/readyz", timeout=30)

    def findings(self) -> dict[str, int]:
        """Reconciles the sources without a grace period. Returns the number of orders of each class that fails."""
        done = self._pipelines("reconcile", "--engine", "sqlite", "--json", *self._sources)
        assert done.returncode in (0, 1), done.stderr
        return {found["finding"]: found["count"] for found in json.loads(done.stdout)["findings"] if found["fails"]}

    def adopt_history(self) -> None:
        """Makes the promoted order database decide all half messages."""
        command = [sys.executable, "-m", "order_service", "adopt-history", "--order-adoption-reason", "the primary is lost"]
        subprocess.run(command, check=True, env={**os.environ, **self.system.environment}, timeout=60)

    def repair(self) -> None:
        """Plans a repair, and applies all of its steps."""
        planned = self._pipelines("repair", "--plan", "plan.json", *self._sources)
        applied = self._pipelines("repair", "--apply", "plan.json")
        assert applied.returncode == 0, planned.stderr + applied.stdout + applied.stderr

    @property
    def _sources(self) -> tuple[str, ...]:
        return ("--grace-seconds", "0", "--store", str(self.system.broker_store))

    def _pipelines(self, *command: str) -> subprocess.CompletedProcess[str]:
        return pipelines(*command, cwd=self.system.home, **self.system.environment)


@contextmanager
def shop(processes: Processes, folder: Path, options: str) -> Iterator[Shop]:
    key = folder / "repair-key"
    key.write_text("opens the ledger")
    with pair(options) as orders, pair(options) as credits_:
        urls = {"ORDER_DATABASE_URL": orders.url, "CREDIT_DATABASE_URL": credits_.url}
        system = System(processes, folder / "system", environment={**urls, "CREDIT_REPAIR_KEY_FILE": str(key)})
        system.environment["CREDIT_SERVICE_URL"] = system.credit_url
        engines = database(ORDER_DATABASE, orders.url), database(CREDIT_DATABASE, credits_.url)
        system.start()
        yield Shop(system, orders, credits_, *engines, Load(system.order_url))
        for process in reversed(system.services):
            process.stop()
        for engine in engines:
            engine.dispose()


def test_nothing_is_lost_if_the_standby_is_synchronous(processes: Processes, tmp_path: Path) -> None:
    with shop(processes, tmp_path, SYNCHRONOUS) as running:
        with running.load.running():
            running.load.go_on()
            unpaid = place_unpaid(running.system.order_url)
            for failing in (running.order_database, running.credit_database):
                failing.fail_over()
                running.load.go_on()
            for order_id in unpaid:
                post(f"{running.system.order_url}/orders/{order_id}/payment", {})
            wait_until(lambda: set(unpaid) <= running.entries().keys())
        orders = {*running.load.placed, *unpaid}
        wait_until(lambda: orders <= running.entries().keys())
        print(f"\n{len(orders)} orders")
        assert running.orders() == orders
        assert running.entries() == {order: ["credit"] for order in orders}
        assert running.findings() == {}
        for url in (running.system.order_url, running.system.credit_url):
            wait_until(lambda url=url: running.readiness(url).is_success)
        refuse_the_old_primary(running)


def refuse_the_old_primary(running: Shop) -> None:
    """Starts the killed primary again: a split brain. An order service that starts on it accepts no orders."""
    running.order_database.primary.start()
    running.system.order_service.kill()
    running.system.order_service.spawn()
    wait_until(lambda: OLD_COPY in running.system.order_service.output())
    assert httpx.post(f"{running.system.order_url}/orders", json=ORDER, timeout=60).status_code == 503
    running.order_database.primary.kill()
    wait_until(lambda: running.readiness(running.system.order_url).is_success)


def test_what_an_asynchronous_standby_lacks_is_reported_and_repaired(processes: Processes, tmp_path: Path) -> None:
    with shop(processes, tmp_path, ASYNCHRONOUS) as running:
        with running.load.running():
            lose_credits(running)
            lost, unpaid = lose_orders(running)
            running.adopt_history()
            running.load.go_on()
        wait_until(running.is_each_placed_order_credited)
        wait_until(lambda: running.readiness(running.system.order_url).is_success)
        found = running.findings()
        print(f"reconcile: {found}")
        assert found.keys() == {"credit_without_order"}
        assert found["credit_without_order"] >= len(lost)  # the others were stored, but not acknowledged
        running.repair()
        assert running.findings() == {}
        orders, entries = running.orders(), running.entries()
        assert {order for order, kinds in entries.items() if kinds == ["credit"]} == orders
        assert lost <= {order for order, kinds in entries.items() if kinds == ["credit", "reversal"]}
        assert not unpaid & (orders | entries.keys())  # nothing reports these


def lose_credits(running: Shop) -> None:
    """Loses credits. The credit service reports it, and gets their messages again."""
    running.load.go_on()
    running.credit_database.primary.hold_log()
    running.load.go_on()
    wait_until(running.is_each_placed_order_credited)
    before = running.entries().keys()
    running.credit_database.fail_over()
    lost = before - running.entries().keys()
    wait_until(lambda: RESET in running.system.credit_service.output())
    running.load.go_on()
    wait_until(running.is_each_placed_order_credited)
    attention = httpx.get(f"{running.system.credit_url}/healthz", timeout=30).json()["attention"]
    print(f"\n{len(lost)} credits were lost; /healthz: {attention}")
    assert lost
    assert RESET in attention[0]
    assert running.readiness(running.system.credit_url).is_success


def lose_orders(running: Shop) -> tuple[set[str], set[str]]:
    """Loses orders, of which some are not paid yet. Returns the ids of both.

    The order service reports it, and accepts no orders until an operator decides.
    """
    order_url = running.system.order_url
    running.order_database.primary.hold_log()
    running.load.go_on()
    unpaid = set(place_unpaid(order_url))
    running.load.go_on()
    wait_until(running.is_each_placed_order_credited)
    running.order_database.fail_over()
    lost = set(running.load.placed) - running.orders()
    wait_until(lambda: "history: " in running.readiness(order_url).text)
    readiness, response = running.readiness(order_url), httpx.post(f"{order_url}/orders", json=ORDER, timeout=60)
    print(f"{len(lost)} paid orders and {len(unpaid)} unpaid ones were lost; /readyz: {readiness.text}")
    assert (readiness.status_code, response.status_code) == (503, 503)
    assert lost
    assert not unpaid & running.orders()
    return lost, unpaid
