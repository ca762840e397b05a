"""Tests of migrations on SQLite and PostgreSQL, for a service that exists only in this test."""

import itertools
import os
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, func, select, text

from service_runtime.database.engine import DatabaseUnusable, create_database_engine
from service_runtime.database.migration import ADVISORY_LOCK, LocksHeld, Migrated, migrate
from service_runtime.database.opening import migrate_database, open_database
from tests.waiting import wait_until

ENV = """
from alembic import context
attributes = context.config.attributes
context.configure(connection=attributes["connection"], version_table=attributes["version_table"])
with context.begin_transaction():
    context.run_migrations()
"""
STEP = """
from alembic import op
revision, down_revision, branch_labels, depends_on = {revision!r}, {before!r}, None, None
def upgrade():
    op.execute({statement!r})
"""


class SampleService:
    """The migrations of a service, in a separate package. Tests add steps to them, as a new version would."""

    _count = itertools.count(1)

    def __init__(self, folder: Path) -> None:
        # A package is imported once in a process: each test has one of its own.
        self.name = f"sample{next(self._count)}_service"
        self.migrations = f"{self.name}:migrations"
        self._migrations = folder / self.name / "migrations"
        (self._migrations / "versions").mkdir(parents=True)
        (folder / self.name / "__init__.py").touch()
        (self._migrations / "env.py").write_text(ENV)
        self._steps: list[str] = []

    def add_step(self, statement: str) -> str:
        """Adds a step, and returns its revision."""
        revision, before = f"{len(self._steps) + 1:04}", self._steps[-1] if self._steps else None
        step = STEP.format(revision=revision, before=before, statement=statement)
        (self._migrations / "versions" / f"{revision}_step.py").write_text(textwrap.dedent(step))
        self._steps.append(revision)
        return revision

    def remove_last_step(self) -> None:
        """Removes the last step, as in an older version of the program."""
        (self._migrations / "versions" / f"{self._steps.pop()}_step.py").unlink()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleService:
    monkeypatch.syspath_prepend(str(tmp_path))
    service = SampleService(tmp_path)
    service.add_step("CREATE TABLE things (id INTEGER PRIMARY KEY)")
    return service


@pytest.fixture
def open_engine() -> Iterator[Callable[[str], Engine]]:
    opened: list[Engine] = []

    def open_one(url: str) -> Engine:
        opened.append(create_database_engine(url))
        return opened[-1]

    yield open_one
    for engine in opened:
        engine.dispose()


def test_a_migration_says_where_it_came_from_and_where_it_is(service: SampleService, database_url: str) -> None:
    first, nothing = (migrate_database(database_url, migrations=service.migrations, start_timeout_s=5) for _ in range(2))
    service.add_step("ALTER TABLE things ADD COLUMN name TEXT")
    second = migrate_database(database_url, migrations=service.migrations, start_timeout_s=5)
    assert (first, nothing, second) == (Migrated(None, "0001"), Migrated("0001", "0001"), Migrated("0001", "0002"))
    assert [str(done) for done in (first, nothing, second)] == [
        "migrated from no tables to revision 0001",
        "the tables are already at revision 0001",
        "migrated from revision 0001 to revision 0002",
    ]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_migration_takes_longer_than_any_other_statement_may(
    service: SampleService, database_url: str, open_engine: Callable[[str], Engine]
) -> None:
    service.add_step("SELECT pg_sleep(2.5)")
    engine = open_engine(f"{database_url}?options=-c%20statement_timeout%3D2000")
    assert migrate(engine, service.migrations) == Migrated(None, "0002")
    with engine.connect() as connection:
        assert connection.scalar(text("SHOW statement_timeout")) == "2s"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_migration_behind_a_long_reader_lets_others_pass_and_runs_when_the_reader_is_done(
    service: SampleService, database_url: str, open_engine: Callable[[str], Engine]
) -> None:
    engine = open_engine(database_url)
    migrate(engine, service.migrations)
    service.add_step("ALTER TABLE things ADD COLUMN name TEXT")
    with ThreadPoolExecutor(1) as threads:
        with engine.connect() as long_reader, engine.connect() as onlooker, engine.connect() as other:
            _read(long_reader)
            migrating = threads.submit(
                migrate_database, database_url, migrations=service.migrations, start_timeout_s=20, lock_wait_s=120
            )
            wait_until(lambda: _waits_for_its_lock(onlooker))
            _read(other)
            assert not migrating.done()
        assert migrating.result(60) == Migrated("0001", "0002")


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_locks_that_are_never_given_are_said_in_one_line(
    service: SampleService, database_url: str, open_engine: Callable[[str], Engine]
) -> None:
    migrate_database(database_url, migrations=service.migrations, start_timeout_s=5)
    service.add_step("ALTER TABLE things ADD COLUMN name TEXT")
    with open_engine(database_url).connect() as reader:
        _read(reader)
        with pytest.raises(DatabaseUnusable, match=r"others have locked for 0\.1 s: canceling statement due to lock timeout"):
            migrate_database(database_url, migrations=service.migrations, start_timeout_s=5, lock_wait_s=0.1)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_role_that_may_not_make_tables_is_said_in_one_line_at_once(
    service: SampleService, database_url: str, open_engine: Callable[[str], Engine]
) -> None:
    role = f"reader_{service.name}_{os.getpid()}"
    with open_engine(database_url).begin() as connection:
        connection.execute(text(f"CREATE ROLE {role} LOGIN"))
        connection.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
    url = database_url.replace("postgres@", f"{role}@")
    with pytest.raises(DatabaseUnusable, match="permission denied for schema public") as raised:
        open_database(url, migrations=service.migrations, start_timeout_s=3600)
    assert "\n" not in str(raised.value)


def test_who_comes_while_another_process_migrates_waits_for_it(
    service: SampleService, database_url: str, open_engine: Callable[[str], Engine]
) -> None:
    with _another_migration(open_engine(database_url)) as finish, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(
            migrate_database, database_url, migrations=service.migrations, start_timeout_s=1, lock_wait_s=120
        )
        with pytest.raises(TimeoutError):
            waiting.result(1.5)
        finish()
        assert waiting.result(60).after == "0001"


def test_a_step_that_fails_is_said_in_one_line_and_leaves_no_trace(service: SampleService, database_url: str) -> None:
    service.add_step("ALTER TABLE absent ADD COLUMN name TEXT")
    with pytest.raises(DatabaseUnusable, match="absent") as raised:
        migrate_database(database_url, migrations=service.migrations, start_timeout_s=0.5)
    assert "\n" not in str(raised.value)
    service.remove_last_step()
    assert migrate_database(database_url, migrations=service.migrations, start_timeout_s=5) == Migrated(None, "0001")


def test_a_database_of_a_newer_version_is_left_alone(service: SampleService, database_url: str) -> None:
    service.add_step("ALTER TABLE things ADD COLUMN name TEXT")
    migrate_database(database_url, migrations=service.migrations, start_timeout_s=5)
    service.remove_last_step()
    with pytest.raises(DatabaseUnusable, match=f"at revision 0002 of a newer {service.name}"):
        open_database(database_url, migrations=service.migrations, start_timeout_s=5)


def test_a_service_that_may_not_migrate_says_what_to_run(service: SampleService, database_url: str) -> None:
    asked = {"migrations": service.migrations, "start_timeout_s": 5, "is_migrated": False}
    with pytest.raises(
        DatabaseUnusable, match=f"no tables yet, but revision 0001 is required: run python -m {service.name} migrate"
    ):
        open_database(database_url, **asked)  # type: ignore[arg-type]
    migrate_database(database_url, migrations=service.migrations, start_timeout_s=5)
    open_database(database_url, **asked).dispose()  # type: ignore[arg-type]


@pytest.mark.parametrize("is_migrated", [True, False])
def test_the_database_of_another_service_is_refused(service: SampleService, database_url: str, is_migrated: bool) -> None:
    """A service refuses a database that contains the tables of another service.

    It does so whether it migrates the database itself or the database is migrated already.
    """
    engine = create_database_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE other_service_version (version_num VARCHAR(32))"))
    engine.dispose()
    with pytest.raises(DatabaseUnusable, match=f"contains the tables of other_service; {service.name} needs a separate database"):
        open_database(database_url, migrations=service.migrations, start_timeout_s=5, is_migrated=is_migrated)


def test_rows_that_would_lose_what_they_refer_to_undo_the_migration(service: SampleService, sqlite_url: str) -> None:
    service.add_step("CREATE TABLE parts (thing INTEGER REFERENCES things (id))")
    engine = open_database(sqlite_url, migrations=service.migrations, start_timeout_s=5)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO things VALUES (1)"))
        connection.execute(text("INSERT INTO parts VALUES (1)"))
    service.add_step("DELETE FROM things")
    with pytest.raises(DatabaseUnusable, match="would leave 1 rows with broken foreign keys"):
        migrate(engine, service.migrations)
    with engine.begin() as connection:
        assert connection.scalar(text("SELECT count(*) FROM things")) == 1
        with pytest.raises(Exception, match="FOREIGN KEY"):
            connection.execute(text("DELETE FROM things"))
    engine.dispose()


def test_nothing_is_locked_when_there_is_nothing_to_do(
    service: SampleService, database_url: str, open_engine: Callable[[str], Engine]
) -> None:
    migrate_database(database_url, migrations=service.migrations, start_timeout_s=5)
    with _another_migration(open_engine(database_url)):
        assert migrate(open_engine(database_url), service.migrations) == Migrated("0001", "0001")


def test_two_migrations_do_not_run_side_by_side(
    service: SampleService, database_url: str, open_engine: Callable[[str], Engine]
) -> None:
    engine = open_engine(database_url)
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout=50")
    with _another_migration(open_engine(database_url)), pytest.raises(LocksHeld):
        migrate(engine, service.migrations)


@contextmanager
def _another_migration(engine: Engine) -> Iterator[Callable[[], None]]:
    """Holds the locks of a migration. Yields a function that releases them."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))
        else:
            connection.execute(text("SELECT 1"))
        yield connection.rollback


def _read(connection: Connection) -> None:
    """Reads, and keeps the transaction open."""
    connection.execute(text("SET LOCAL statement_timeout = '30s'"))
    connection.execute(text("SELECT count(*) FROM things"))


def _waits_for_its_lock(onlooker: Connection) -> bool:
    asked = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted"
    return bool(onlooker.scalar(text(asked)))
