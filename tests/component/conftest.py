"""A database of each kind, with the tables of whichever service's tests ask: their conftest gives `migrations`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from service_runtime.database.opening import open_database
from tests.postgresql_server import new_database


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/service.db"


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
    opened = open_database(database_url, migrations=migrations, start_timeout_s=10)
    yield opened
    opened.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str, migrations: str) -> Iterator[Engine]:
    opened = open_database(sqlite_url, migrations=migrations, start_timeout_s=10)
    yield opened
    opened.dispose()
