"""Tests of the services' engines, in particular of timeouts when a database does not respond."""

import gc
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from rocketmq_broker.world import World, in_world
from service_runtime.database.engine import create_database_engine
from tests.postgresql_server import new_database


@pytest.fixture
def no_collection_of_cycles() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection_of_cycles")
def test_a_connection_that_timed_out_is_closed_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_database:
        port = silent_database.getsockname()[1]
        engine = create_database_engine(f"postgresql+psycopg://ann@127.0.0.1:{port}/orders?connect_timeout=2")

        with pytest.raises(OperationalError, match="timeout expired"):
            engine.connect()

        attempt, _ = silent_database.accept()
        with attempt:
            attempt.settimeout(1)
            while attempt.recv(1024):
                pass  # the request; an open socket ends this with TimeoutError


def test_a_database_that_is_made_is_for_its_user_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        engine = create_database_engine(f"sqlite:///{tmp_path}/orders.db")
        assert not (tmp_path / "orders.db").exists(), "making an engine connects to nothing"
        with engine.connect() as connection:
            connection.exec_driver_sql("CREATE TABLE orders (id)")
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        engine.dispose()
    finally:
        os.umask(before)
    assert modes == {"orders.db": 0o600, "orders.db-wal": 0o600, "orders.db-shm": 0o600}


class WatchedConnections:
    """A PostgreSQL engine whose time the test controls. Counts the pings before the use of a connection."""

    def __init__(self, url: str) -> None:
        self.time_s = 0.0
        self.asked = 0
        with in_world(World(steady_ns=lambda: int(self.time_s * 1e9))):
            self.engine: Engine = create_database_engine(url)
        self._ping, self.engine.dialect.do_ping = self.engine.dialect.do_ping, self._count  # type: ignore[assignment]

    def _count(self, connection: Any) -> bool:
        self.asked += 1
        return self._ping(connection)

    def backend(self) -> int:
        """Uses a connection, and returns its process id on the server."""
        with self.engine.connect() as connection:
            return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


@pytest.fixture(params=["postgresql"])
def watched() -> Iterator[WatchedConnections]:
    url = new_database()
    if url is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    made = WatchedConnections(url)
    yield made
    made.engine.dispose()


def test_a_connection_is_asked_before_its_use_only_after_a_second_of_rest(watched: WatchedConnections) -> None:
    first = watched.backend()
    watched.time_s = 0.9
    assert (watched.backend(), watched.asked) == (first, 0)
    watched.time_s = 2.0
    assert (watched.backend(), watched.asked) == (first, 1)


@pytest.mark.parametrize("rest_s", [0.0, 60.0])
def test_connections_that_the_server_ended_are_replaced_before_their_use(watched: WatchedConnections, rest_s: float) -> None:
    with watched.engine.connect() as one, watched.engine.connect() as other:
        ended = [int(each.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()) for each in (one, other)]
    with psycopg.connect(watched.engine.url.set(drivername="postgresql").render_as_string(), autocommit=True) as administrator:
        for backend in ended:
            # Waits until the backend has gone, and so has closed its socket.
            administrator.execute("SELECT pg_terminate_backend(%s, 30000)", [backend])
    watched.time_s += rest_s
    assert {watched.backend(), watched.backend()}.isdisjoint(ended)
    assert watched.asked == 1, "the first one found lost makes the pool renew all"


def test_a_connection_that_the_driver_has_given_up_is_replaced(watched: WatchedConnections) -> None:
    with watched.engine.connect() as connection:
        driver = connection.connection.driver_connection
    assert driver is not None
    driver.close()
    assert watched.backend() > 0
