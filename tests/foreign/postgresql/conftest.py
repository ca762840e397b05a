"""Fixtures for a PostgreSQL server of each test file, which the tests may freeze and stop."""

from collections.abc import Iterator

import pytest

from tests.foreign.postgresql.postgres import PostgresServer, binaries, running_postgres


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL in /usr/lib/postgresql: apt-get install postgresql")
    with running_postgres(programs) as running:
        yield running
