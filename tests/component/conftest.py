"""Fixtures with a database of each kind. The directory of each service's tests provides `migrations`."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from lab.simulation.databases.template import template
from rocketmq_broker.testing.simulation.databases.scratch import scratch_folder
from service_runtime.database.opening import open_database
from tests.passing_time import Clock
from tests.postgresql_server import new_database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database_folder() -> Iterator[Path]:
    """Yields a temporary folder, in memory if possible, because commits to a disk would slow these tests down."""
    with tempfile.TemporaryDirectory(dir=scratch_folder(), ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def sqlite_url(database_folder: Path) -> str:
    return f"sqlite:///{database_folder}/service.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """Returns the URL of a new database, once for each kind of database."""
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
    """Opens a new database. A SQLite database is a copy of the migrated template, which takes a tenth of the time."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not path.exists():
        shutil.copyfile(template(migrations).path, path)
    return open_database(url, migrations=migrations, start_timeout_s=10)
