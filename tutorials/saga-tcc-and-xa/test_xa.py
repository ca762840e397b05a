"""Tests XA on two PostgreSQL databases.

After a kill between the two commits, the second transaction stays prepared until recovery.
"""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.postgresql_server import new_database
from tutorials.halfway import xa
from tutorials.halfway.postgresql import connected


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


@pytest.fixture
def databases(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Creates an order database and a credit database. Returns their URLs, which ORDERS_URL and CREDITS_URL have as well."""
    urls = [url.replace("+psycopg", "") for url in (new_database(), new_database()) if url is not None]
    for name, url in zip(("ORDERS_URL", "CREDITS_URL"), urls, strict=True):
        monkeypatch.setenv(name, url)
    return urls


@pytest.mark.postgresql
def test_the_credit_is_neither_visible_nor_free_until_someone_recovers(databases: list[str], tmp_path: Path) -> None:
    orders, credits = databases
    place = [sys.executable, "-m", "tutorials.halfway", "xa", str(tmp_path), "place", "order-1", "kill"]
    subprocess.run(place, check=False)
    assert rows(orders, "SELECT * FROM orders") == [("order-1", "PLACED")]
    assert rows(credits, "SELECT * FROM credits") == []
    assert rows(credits, "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()") == [(1,)]
    with psycopg.connect(credits, options="-c lock_timeout=50") as connection, pytest.raises(psycopg.errors.LockNotAvailable):
        connection.execute("INSERT INTO credits VALUES ('order-1', 'GIVEN')")
    xa.recover(tmp_path)
    assert rows(credits, "SELECT * FROM credits") == [("order-1", "GIVEN")]


@pytest.mark.postgresql
def test_without_a_decision_in_the_log_both_are_rolled_back(databases: list[str], tmp_path: Path) -> None:
    orders, _ = databases
    with connected("orders") as connection:
        connection.tpc_begin(connection.xid(1, "order-1", "orders"))
        connection.execute(xa.PLACE, ["order-1"])
        connection.tpc_prepare()
    xa.recover(tmp_path)
    assert rows(orders, "SELECT * FROM orders") == []
    assert rows(orders, "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()") == [(0,)]
