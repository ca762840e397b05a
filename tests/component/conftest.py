"""A database of each kind, with the tables of whichever service's tests ask: their conftest gives `migrations`."""

import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Engine

from service_runtime.database.opening import open_database
from tests.postgresql_server import new_database

_IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def database_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the machine has one: these tests ask for logic, and each commit would wait for the disk."""
    if not os.access(_IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY, prefix="database-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def sqlite_url(database_folder: Path) -> str:
    return f"sqlite:///{database_folder}/service.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """A database of each kind."""
    if request.param == "sqlite":
        return sqlite_url
    url = new_database()
    if url is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    return url


@pytest.fixture
def engine(database_url: str, migrations: str) -> Iterator[Engine]:
    opened = _opened(database_url, migrations)
    yield opened
    opened.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str, migrations: str) -> Iterator[Engine]:
    opened = _opened(sqlite_url, migrations)
    yield opened
    opened.dispose()


def _opened(url: str, migrations: str) -> Engine:
    """Opens a new database. One of SQLite is a copy of the first with these migrations, which takes a tenth of their time."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not path.exists():
        path.write_bytes(_migrated(migrations))
    return open_database(url, migrations=migrations, start_timeout_s=10)


@cache
def _migrated(migrations: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "migrated.db"
        open_database(f"sqlite:///{path}", migrations=migrations, start_timeout_s=10).dispose()
        return path.read_bytes()
