"""Migrates a database's tables to the program's version, once, even if several processes start at the same time.

A statement of a migration has no timeout, because filling or indexing a large table takes a long time. Its wait for
a lock has a timeout, because other statements queue behind a waiting migration and the service stalls. A migration
therefore stops if it cannot get the lock within two seconds, and `service_runtime.database.opening` retries it later.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, func, inspect, select
from sqlalchemy.exc import OperationalError

from service_runtime.database.database_url import masked
from service_runtime.database.engine import DatabaseUnusable

LOCK_TIMEOUT_MS: Final = 2_000
"""The time-out in milliseconds for each lock of a migration.

It is shorter than the lock time-out of the services' statements (5 s), so that a waiting migration does not make these statements
fail.
"""

_VERSION_TABLE_ENDING: Final = "_service_version"
ADVISORY_LOCK: Final = 0x7472616E73
"""The key of PostgreSQL's advisory lock for migrations.

All services use the same key, so that two services that share a database by mistake do not migrate it at the same time.
"""
_HELD_BY_OTHERS: Final = ("55P03", "40P01", "SQLITE_BUSY")
"""The errors for locks that other sessions hold.

These are PostgreSQL's lock_not_available and deadlock_detected, and SQLite's error while another process writes.
"""

logger = logging.getLogger(__name__)


class LocksHeld(Exception):
    """Other sessions hold the locks, or another process is migrating the database. Nothing was changed; retry later."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """The revisions of the tables before the migration (None if there were no tables) and after it."""

    before: str | None
    after: str

    def __str__(self) -> str:
        """Returns the text for the command's output."""
        if self.before == self.after:
            return f"the tables are already at revision {self.after}"
        before = "no tables" if self.before is None else f"revision {self.before}"
        return f"migrated from {before} to revision {self.after}"


def migrate(engine: Engine, migrations: str) -> Migrated:
    """Migrates the tables to this version in one transaction. `migrations` is Alembic's location, "package:folder".

    Raises LocksHeld, and DatabaseUnusable for tables of another service or a newer version.
    """
    steps = _Steps(migrations)
    with engine.execution_options(read_only=True).connect() as connection:
        before = steps.revision_of(connection)
    if before == steps.newest:
        return Migrated(before, before)
    with _alone(engine) as connection:
        before = steps.revision_of(connection)
        steps.run(connection)
    return Migrated(before, steps.newest)


def check_revision(engine: Engine, migrations: str) -> None:
    """Checks that the tables have this version. Raises DatabaseUnusable if they do not."""
    steps = _Steps(migrations)
    with engine.execution_options(read_only=True).connect() as connection:
        found = steps.revision_of(connection)
    if found != steps.newest:
        has = "no tables yet" if found is None else f"tables of revision {found}"
        raise DatabaseUnusable(
            f"the database {_shown(engine)} has {has}, but revision {steps.newest} is required: "
            f"run python -m {steps.service} migrate"
        )


class _Steps:
    """The migrations of one service, and the table that contains the database's revision."""

    def __init__(self, migrations: str) -> None:
        self.service = migrations.partition(":")[0]
        self._version_table = f"{self.service}_version"
        self._config = Config()
        self._config.set_main_option("script_location", migrations)
        self._config.attributes["version_table"] = self._version_table
        self._scripts = ScriptDirectory.from_config(self._config)
        self.newest = str(self._scripts.get_current_head())

    def revision_of(self, connection: Connection) -> str | None:
        """Returns the tables' revision, or None if there are no tables.

        Raises DatabaseUnusable if the tables belong to another service or to a newer version.
        """
        tables = inspect(connection).get_table_names()
        others = [name for name in tables if name.endswith(_VERSION_TABLE_ENDING) and name != self._version_table]
        if others:
            raise DatabaseUnusable(
                f"the database {_shown(connection.engine)} contains the tables of {others[0].removesuffix('_version')}; "
                f"{self.service} needs a separate database"
            )
        revision = MigrationContext.configure(connection, opts={"version_table": self._version_table}).get_current_revision()
        if revision is not None and revision not in {script.revision for script in self._scripts.walk_revisions()}:
            raise DatabaseUnusable(
                f"the database {_shown(connection.engine)} is at revision {revision} of a newer {self.service}; "
                f"this version supports revisions up to {self.newest}"
            )
        return revision

    def run(self, connection: Connection) -> None:
        """Runs all missing migrations on this connection, in its transaction."""
        self._config.attributes["connection"] = connection
        command.upgrade(self._config, "head")


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """Yields a connection whose transaction excludes other migrations. Raises LocksHeld."""
    try:
        with engine.connect() as connection:
            # The connection is not returned to the pool, because its settings are for migrations only.
            connection.detach()
            with _sqlite_alone(connection) if engine.dialect.name == "sqlite" else _postgresql_alone(connection):
                yield connection
    except OperationalError as error:
        code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "sqlite_errorname", None)
        if code in _HELD_BY_OTHERS:
            raise LocksHeld(str(error.orig).strip().splitlines()[0]) from error
        raise


@contextmanager
def _postgresql_alone(connection: Connection) -> Iterator[None]:
    with connection.begin():
        for setting in ("statement_timeout = 0", "idle_in_transaction_session_timeout = 0", f"lock_timeout = {LOCK_TIMEOUT_MS}"):
            connection.exec_driver_sql(f"SET LOCAL {setting}")
        # Does not wait for the lock: waiting in a transaction would block CREATE INDEX CONCURRENTLY and vacuum.
        if not connection.scalar(select(func.pg_try_advisory_xact_lock(ADVISORY_LOCK))):
            raise LocksHeld("another process is migrating the database")
        yield


@contextmanager
def _sqlite_alone(connection: Connection) -> Iterator[None]:
    """Turns foreign keys off while tables are rebuilt, as SQLite requires. Checks the foreign keys before the database commit."""
    connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
    with connection.begin():
        yield
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise DatabaseUnusable(f"the migration was rolled back: it would leave {len(broken)} rows with broken foreign keys")


def _shown(engine: Engine) -> str:
    return masked(engine.url.render_as_string(hide_password=True))
