"""The engines of the services: how they give up a database that does not answer."""

import gc
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from service_runtime.database.engine import create_database_engine


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
