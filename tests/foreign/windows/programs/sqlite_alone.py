"""A pytest plugin that runs tests/component/databases on SQLite only, since PostgreSQL does not run under Wine."""

from pathlib import Path

import pytest


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Returns the URL of a new database."""
    return f"sqlite:///{(tmp_path / 'service.db').as_posix()}"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Returns the same URL, under the fixture name of the tests that run on each kind of database."""
    return sqlite_url
