"""A pytest plugin: the database of the tests in tests/component/databases is SQLite. PostgreSQL does not run under Wine."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a new database."""
    return f"sqlite:///{(tmp_path / 'service.db').as_posix()}"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """The same URL, under the name of the tests that run on each kind of database."""
    return sqlite_url
