"""Opens a service's database: SQLite made durable, or PostgreSQL with bounded waits; waits for it at start; migrates it."""

import logging
import sqlite3
import zlib
from pathlib import Path
from typing import Any, Final

import stamina
from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError, OperationalError

_BUSY_TIMEOUT_MS: Final = 10_000
_POSTGRESQL_WAITS: Final = "-c lock_timeout=5000 -c statement_timeout=15000 -c idle_in_transaction_session_timeout=30000"

logger = logging.getLogger(__name__)


class DatabaseUnusable(Exception):
    """The database cannot be used: an unknown kind of URL, or not reachable in the time allowed."""


def masked(url: str) -> str:
    """A URL as it may be logged: no password and no parameters. Text that is no URL is not shown at all."""
    try:
        return make_url(url).set(query={}).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "<a URL that cannot be read>"


def open_database(url: str, *, migrations: str, start_timeout_s: float) -> Engine:
    """A database that answers and has the tables of this version. Raises DatabaseUnusable, in one line.

    `migrations` is where Alembic finds the service's migrations: "order_service:migrations".
    """
    engine = create_database_engine(url)
    try:
        for attempt in stamina.retry_context(on=OperationalError, attempts=None, timeout=start_timeout_s, wait_max=2.0):
            with attempt:
                migrate(engine, migrations)
    except OperationalError as error:
        engine.dispose()
        reason = str(error.orig).strip().splitlines()[0]
        raise DatabaseUnusable(f"cannot use the database {masked(url)} after {start_timeout_s:g} s: {reason}") from None
    return engine


def create_database_engine(url: str) -> Engine:
    """The engine for a URL; connects to nothing yet. Raises DatabaseUnusable for a URL that is not understood."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise DatabaseUnusable(
            "the database URL cannot be read: sqlite:///path or postgresql+psycopg://... is expected"
        ) from None
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite_engine(parsed)
    if parsed.drivername == "postgresql+psycopg":
        return create_engine(
            parsed,
            pool_pre_ping=True,
            pool_size=20,
            pool_timeout=10,
            hide_parameters=True,
            connect_args={"connect_timeout": 5, "tcp_user_timeout": 10_000, "options": _POSTGRESQL_WAITS},
        )
    raise DatabaseUnusable(f"no database of the kind {parsed.drivername!r} can be used: sqlite or postgresql+psycopg is expected")


def migrate(engine: Engine, migrations: str) -> None:
    """Brings the tables to this version, in one transaction; processes that start at once do it one after the other."""
    config = Config()
    config.set_main_option("script_location", migrations)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(zlib.crc32(migrations.encode()))))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _sqlite_engine(url: URL) -> Engine:
    if url.database in (None, "", ":memory:"):
        raise DatabaseUnusable("a database in memory would forget everything: sqlite:///path is expected")
    _make_folder_of(Path(str(url.database)))
    engine = create_engine(url, pool_size=20, pool_timeout=10, hide_parameters=True)
    event.listen(engine, "connect", _make_durable)
    event.listen(engine, "begin", _begin_immediately)
    return engine


def _make_folder_of(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnusable(f"the folder of the database {path} cannot be made: {error.strerror}") from None


def _make_durable(connection: sqlite3.Connection, _record: Any) -> None:
    """What is committed stays committed, whatever loses power; readers do not wait for the writer."""
    connection.isolation_level = None
    for pragma in (f"busy_timeout={_BUSY_TIMEOUT_MS}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_immediately(connection: Connection) -> None:
    """A transaction that will write takes its turn when it begins: taking it later could fail at once (SQLITE_BUSY)."""
    is_read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if is_read_only else "BEGIN IMMEDIATE")
