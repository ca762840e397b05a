"""Tests that the services report a missing synchronous standby, and recover when it returns.

Every commit hangs while the standby of PostgreSQL is missing. `pytest -s` prints the table: the responses of
/readyz and of an order, and how long credits took afterwards.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from demo.processes import Processes
from demo.system import System
from tests.postgresql_server import new_database

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(500)]

ORDER = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 250}]}
GONE_S = 45.0
HEALS_WITHIN_S = 60.0


@contextlib.contextmanager
def standby_gone(url: str) -> Iterator[None]:
    """Makes the server's commits wait for a missing standby, except in this session."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = local")
        for names in ("gone", ""):
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'".encode())
            connection.execute("SELECT pg_reload_conf()")
            if names:
                yield


def wait_until(is_so: Callable[[], Any], timeout_s: float) -> float | None:
    """Returns the seconds until `is_so` was true, or None after `timeout_s`."""
    began_s = time.monotonic()
    while not is_so():
        if time.monotonic() - began_s > timeout_s:
            return None
        time.sleep(0.2)
    return time.monotonic() - began_s


@pytest.mark.release
def test_no_service_is_ready_while_no_commit_ends_and_all_is_credited_soon_after(processes: Processes, tmp_path: Path) -> None:
    orders, credits_ = new_database(), new_database()
    if orders is None or credits_ is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    system = System(
        processes,
        tmp_path / "system",
        order_environment={"ORDER_DATABASE_URL": orders},
        environment={"CREDIT_DATABASE_URL": credits_},
    )
    system.start()
    placed: list[str] = []

    def place(timeout_s: float = 60) -> int:
        try:
            answer = httpx.post(f"{system.order_url}/orders", json=ORDER, timeout=timeout_s)
        except httpx.TimeoutException:
            return 0
        if answer.is_success:
            placed.append(answer.headers["Location"].rpartition("/")[2])
        return answer.status_code

    def ready(url: str) -> int:
        return httpx.get(f"{url}/readyz", timeout=30).status_code

    def uncredited() -> list[str]:
        found = {order for (order,) in rows(credits_, "SELECT order_id FROM credits")}
        return [order for order in placed if order not in found]

    for _ in range(20):
        assert place() == 201
    assert wait_until(lambda: not uncredited(), 60) is not None
    # Only the credits hang first: their database alone waits for the standby.
    database = orders.rpartition("/")[2]
    rows(orders, f"ALTER DATABASE {database} SET synchronous_commit = local")
    system.order_service.kill()
    system.order_service.start()
    with standby_gone(credits_):
        began_s = time.monotonic()
        statuses = [place() for _ in range(20)]
        unready_s = wait_until(lambda: ready(system.credit_url) == 503, 20)
        health = httpx.get(f"{system.credit_url}/healthz", timeout=30)
        time.sleep(max(0.0, GONE_S - (time.monotonic() - began_s)))
        late = len(uncredited())
    healed_s = wait_until(lambda: not uncredited(), 200)
    ready_s = wait_until(lambda: ready(system.credit_url) == 200, 60)
    print(f"\ncredit side: orders {statuses}, unready after {unready_s} s, healthz {health.status_code}, {late} waited;", end=" ")
    print(f"all credited {healed_s} s after the standby was back, ready {ready_s} s after that")
    rows(orders, f"ALTER DATABASE {database} RESET synchronous_commit")
    system.order_service.kill()
    system.order_service.start()
    with standby_gone(credits_):
        order_unready_s = wait_until(lambda: ready(system.order_url) == 503, 20)
        health_status = httpx.get(f"{system.order_url}/healthz", timeout=30).status_code
        status = place(3)
    order_ready_s = wait_until(lambda: ready(system.order_url) == 200, 60)
    again_s = wait_until(lambda: place(5) == 201, 60)
    lost_s = wait_until(lambda: not uncredited(), 120)
    print(f"order side: unready after {order_unready_s} s, healthz {health_status}, an order {status or 'hung'};", end=" ")
    print(f"ready {order_ready_s} s after the standby was back, an order after {again_s} s; uncredited {len(uncredited())}")
    assert (unready_s is not None, health.status_code) == (True, 503)
    assert (order_unready_s is not None, health_status) == (True, 503)
    assert None not in (healed_s, ready_s, order_ready_s, again_s, lost_s)
    assert healed_s is not None
    assert healed_s < HEALS_WITHIN_S


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = local")
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
