"""Creates SQLAlchemy engines: with durable commits for SQLite, and with timeouts for PostgreSQL.

Creating an engine does not connect to the database.
"""

import os
import select
import sqlite3
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event
from sqlalchemy.exc import InvalidatePoolError

from rocketmq_broker.world import current_world
from service_runtime.database.database_url import SQLITE, UnusableUrl, is_behind_pgbouncer, parse_database_url

_BUSY_TIMEOUT_MS: Final = 10_000
_POSTGRESQL_WAITS_MS: Final = {"lock_timeout": 5_000, "statement_timeout": 15_000, "idle_in_transaction_session_timeout": 30_000}
_ISOLATION: Final = "READ COMMITTED"
"""The isolation level that the services need. A stricter default would fail concurrent orders (could not serialize access)."""
_ENCODING: Final = "UTF8"
_MIN_POSTGRESQL: Final = 10
"""The oldest version of PostgreSQL that psycopg supports."""
MIN_SQLITE: Final = (3, 35, 0)
"""The oldest version of SQLite with RETURNING, which the services use."""
POOLS_TRANSACTIONS: Final = "pools_transactions"
"""The execution option of engines whose transactions may use different server sessions, as behind PgBouncer."""

_KEEPALIVES: Final = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
"""TCP keepalive settings that detect a dead server after 11 s while a statement waits for its answer.

Linux's default is two hours.
"""

_TRUSTED_S: Final = 1.0
"""The time in seconds after its last use for which a connection is checked only by its socket, without a round trip."""
_RETURNED_S: Final = "returned_s"


class DatabaseUnusable(Exception):
    """The database cannot be used, for example because of an invalid URL, a timeout, or tables of another version.

    The text is one line.
    """


def create_database_engine(url: str) -> Engine:
    """Returns the engine for a URL of `parse_database_url`. Raises DatabaseUnusable."""
    try:
        parsed = parse_database_url(url)
    except UnusableUrl as error:
        raise DatabaseUnusable(str(error)) from None
    return _sqlite_engine(parsed) if parsed.drivername == SQLITE else _postgresql_engine(parsed, is_behind_pgbouncer(url))


def _postgresql_engine(url: URL, pools_transactions: bool) -> Engine:
    """Returns an engine with timeouts and UTF-8 connections.

    The timeouts are options of each connection. The URL's options override them, because libpq uses the last value of
    a repeated option. With `pools_transactions`, the timeouts are set in each transaction, because two transactions may
    use different sessions. For the same reason statements are not prepared.
    """
    waits = {"connect_timeout": 5, "tcp_user_timeout": 10_000, **_KEEPALIVES}
    arguments: dict[str, Any] = {name: wait for name, wait in waits.items() if name not in url.query}
    if pools_transactions:
        arguments["prepare_threshold"] = None
    else:
        isolation = "-c default_transaction_isolation=" + _ISOLATION.replace(" ", r"\ ")
        bounded = [f"-c {name}={wait}" for name, wait in _POSTGRESQL_WAITS_MS.items()]
        arguments["options"] = " ".join([isolation, *bounded, *url.normalized_query.get("options", ())])
    engine = create_engine(
        url.difference_update_query(["options", "client_encoding"]),
        pool_size=20,
        pool_timeout=10,
        hide_parameters=True,
        connect_args=arguments,
        client_encoding=_ENCODING,
        isolation_level=_ISOLATION,
        execution_options={POOLS_TRANSACTIONS: pools_transactions},
    )
    if pools_transactions:
        event.listen(engine, "begin", _bound_waits)
    event.listen(engine, "do_connect", _connect_or_hang_up)
    _replace_lost_connections(engine)
    return engine


def _bound_waits(connection: Connection) -> None:
    """Sets the timeouts of a transaction, in one round trip."""
    connection.exec_driver_sql("; ".join(f"SET LOCAL {name} = {wait}" for name, wait in _POSTGRESQL_WAITS_MS.items()))


def _replace_lost_connections(engine: Engine) -> None:
    """Checks pooled connections before their use, and replaces lost ones.

    Pings the server only if the connection was idle for a second, or if its socket is readable, for example because the
    server closed it. SQLAlchemy's pool_pre_ping, which pings before each use, would add a round trip to each order.
    """
    dialect, now_s = engine.dialect, current_world().steady_s

    def note_return(_connection: Any, record: Any) -> None:
        record.info[_RETURNED_S] = now_s()

    def replace_if_lost(connection: Any, record: Any, _proxy: Any) -> None:
        returned_s = record.info.get(_RETURNED_S)
        is_new = returned_s is None
        if is_new or (now_s() - returned_s < _TRUSTED_S and not _may_have_ended(connection)):
            return
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as error:
            if dialect.is_disconnect(error, connection, None):
                raise InvalidatePoolError from error
            raise

    event.listen(engine, "checkin", note_return)
    event.listen(engine, "checkout", replace_if_lost)


def _may_have_ended(connection: Any) -> bool:
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _connect_or_hang_up(dialect: Dialect, _record: Any, arguments: tuple[Any, ...], parameters: dict[str, Any]) -> Any:
    """Connects, and closes the socket at once if that fails. Raises NotSupportedError for an unsuitable server.

    psycopg's error refers to itself through its traceback, which keeps the socket of a timed-out connection open until the next
    garbage collection. A stopping PostgreSQL waits up to a minute for such an idle client.
    """
    try:
        connection: Any = dialect.connect(*arguments, **parameters)
    except Exception as error:
        traceback.clear_frames(error.__traceback__)
        if "unsupported startup parameter" in str(error):
            # The end of the driver's message, after its addresses and attempts.
            reason = " ".join(str(error).split()).rpartition("FATAL: ")[2].strip()
            raise dialect.loaded_dbapi.NotSupportedError(
                f"{reason}. The server is a PgBouncer: add pgbouncer=true to the parameters of the database URL"
            ) from None
        raise
    unfit = _why_unfit(connection.info)
    if unfit is not None:
        connection.close()
        raise dialect.loaded_dbapi.NotSupportedError(unfit)
    return connection


def _why_unfit(info: Any) -> str | None:
    """Returns the reason why the server is unsuitable, based on its start-up parameters; None if it is suitable."""
    version, encoding = info.server_version // 10_000, info.parameter_status("server_encoding")
    if version < _MIN_POSTGRESQL:
        return f"the server is PostgreSQL {version}, but {_MIN_POSTGRESQL} or newer is required"
    if encoding != _ENCODING:
        return (
            f"the database's encoding is {encoding}, but {_ENCODING} is required; "
            "create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
    return None


def _sqlite_engine(url: URL) -> Engine:
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        needed = ".".join(map(str, MIN_SQLITE))
        raise DatabaseUnusable(
            f"this Python has SQLite {sqlite3.sqlite_version}, but {needed} or newer is required; use a newer Python"
        )
    path = Path(str(url.database))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseUnusable(f"cannot create the folder of the database {path}: {error.strerror}") from None
    engine = create_engine(url, pool_size=20, pool_timeout=10, hide_parameters=True)
    event.listen(engine, "do_connect", lambda *_: _make_private(path))
    prepare_sqlite(engine)
    return engine


def prepare_sqlite(engine: Engine) -> None:
    """Makes the commits of a SQLite engine durable, and its writing transactions immediate."""
    event.listen(engine, "connect", _make_durable)
    event.listen(engine, "begin", _begin_immediately)


def _make_private(path: Path) -> None:
    """Creates an empty file that only its owner can read.

    SQLite opens it as a new database, and creates the database's other files with the same mode.
    """
    with suppress(OSError):  # the file exists, or SQLite reports the reason better
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _make_durable(connection: sqlite3.Connection, _record: Any) -> None:
    """Makes database commits survive a power failure, and allows reading while another connection writes."""
    connection.isolation_level = None
    for pragma in (f"busy_timeout={_BUSY_TIMEOUT_MS}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_immediately(connection: Connection) -> None:
    """Takes the write lock at the beginning of a writing transaction. Taking it later could fail at once (SQLITE_BUSY)."""
    is_read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if is_read_only else "BEGIN IMMEDIATE")
