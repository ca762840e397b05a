"""Opens sessions with a service's database. A write has a known outcome, or raises OutcomeUnknown.

On SQLite the writers of a process take turns, with a timeout for each wait.
"""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine, Table, false, func, select, text, true
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlmodel import Session

from service_runtime.database.constraints import is_refusal
from service_runtime.database.database_errors import DatabaseRefusal, DatabaseUnavailable, OutcomeUnknown
from service_runtime.database.engine import POOLS_TRANSACTIONS

T = TypeVar("T")

Acquire = Callable[[Callable[[], bool], float], bool]
"""A function that acquires a lock and returns True, or returns False after a time-out (`World.acquire`).

The first argument tries to acquire the lock without blocking, and is called until it returns True. The second argument is the
time-out in seconds.
"""


def is_taken(lock: threading.Lock, timeout_s: float, acquire: Acquire | None) -> bool:
    """Waits up to `timeout_s` for the lock. Returns True if it was acquired. Without `acquire` the wait is in real time."""
    if acquire is None:
        return lock.acquire(timeout=timeout_s)
    return acquire(lambda: lock.acquire(blocking=False), timeout_s)


_TURN_TIMEOUT_S: Final = 5.0
"""The time in seconds that a SQLite writer waits for other writers of this process, equal to PostgreSQL's lock_timeout.

After that, SQLite waits up to 10 s for other processes.
"""
_TRIAL_WAIT_MS: Final = 1_000
"""The time-out in milliseconds for each lock that a readiness check waits for, because it must respond quickly."""
_JUST_NOW_S: Final = 1.0


class Sessions:
    """Opens sessions with one database. Thread-safe."""

    def __init__(
        self,
        engine: Engine,
        *,
        now_s: Callable[[], float],
        acquire: Acquire | None,
        reads_one_moment: bool = False,
    ) -> None:
        """`engine` comes from `service_runtime.database.opening.open_database`. `now_s` is a monotonic clock.

        `acquire` is `World.acquire`, which lets writers wait for each other in a simulation without threads. With
        `reads_one_moment` all statements of a reading session read the same snapshot, as they always do on SQLite.
        """
        is_postgresql = engine.dialect.name == "postgresql"
        isolation = {"isolation_level": "REPEATABLE READ"} if is_postgresql and reads_one_moment else {}
        self._engine = engine
        self._now_s = now_s
        self._read_only_engine = engine.execution_options(read_only=True, **isolation)
        # A statement of its own has no time-outs where each transaction sets them.
        has_time_outs = is_postgresql and not engine.get_execution_options().get(POOLS_TRANSACTIONS, False)
        self._one_statement_engine = engine.execution_options(isolation_level="AUTOCOMMIT") if has_time_outs else None
        self._acquire = acquire
        self._turn = None if is_postgresql else threading.Lock()
        self.insert = postgresql.insert if is_postgresql else sqlite.insert
        """The dialect's INSERT, which supports ON CONFLICT."""
        self._written_s: float | None = None
        """The time of the last database commit in seconds, by `now_s`; None before the first one."""

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Yields a read-only session. Raises DatabaseUnavailable."""
        try:
            with Session(self._read_only_engine) as session:
                yield session
        except SQLAlchemyError as error:
            raise DatabaseUnavailable(in_one_line(error)) from error

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Yields a session, and commits its database transaction after the block. The changes are then durable.

        Raises OutcomeUnknown if the commit fails, DatabaseRefusal if the database refuses the rows, and DatabaseUnavailable if an
        earlier step fails; nothing is written in the last two cases. If the block raises an error, nothing is written.
        """
        with self._transaction() as connection, Session(connection) as session:
            yield session
            session.flush()

    def in_one_statement(self, execute: Callable[[Connection], T]) -> T:
        """Calls `execute` in a separate database transaction, which is durable on return.

        On PostgreSQL `execute` may run only one statement.

        Raises the errors of `writing`, and OutcomeUnknown if the connection is lost during PostgreSQL's single statement.
        """
        if self._one_statement_engine is None:
            with self._transaction() as connection:
                return execute(connection)
        try:
            with self._one_statement_engine.connect() as connection:
                try:
                    result = execute(connection)
                except SQLAlchemyError as error:
                    if is_refusal(error) or _is_surely_undone(error):
                        raise
                    connection.invalidate()
                    raise OutcomeUnknown(in_one_line(error)) from error
        except SQLAlchemyError as error:
            raise _nothing_written(error) from error
        self._written_s = self._now_s()
        return result

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            with self._turn_taken(_TURN_TIMEOUT_S), self._engine.connect() as connection:
                connection.begin()  # before the session begins, because a session rolls back a transaction that it began
                yield connection
                _commit_in_database(connection)
                self._written_s = self._now_s()
        except SQLAlchemyError as error:
            self._forget_schema_after(error)
            raise _nothing_written(error) from error

    @contextmanager
    def _turn_taken(self, timeout_s: float) -> Iterator[None]:
        """Excludes the other writers of this process on SQLite. Raises DatabaseUnavailable after the timeout.

        Without turns, SQLite's waiting writers sleep and retry: 16 threads wrote 4 times more slowly, and some waited for
        seconds. The timeout is needed because a writer on a hanging disk would block all other writers forever.
        """
        if self._turn is None:
            yield
            return
        if not is_taken(self._turn, timeout_s, self._acquire):
            raise DatabaseUnavailable(
                f"other threads of this process held the database's write lock for more than {timeout_s:g} s"
            )
        try:
            yield
        finally:
            self._turn.release()

    def why_unwritable(self, tables: Collection[Table]) -> str | None:
        """Returns the reason why these tables cannot be written to now, in one line; None if they can. Changes no row.

        A successful write within the last second is sufficient proof. Otherwise the check takes the locks of a writer (of the
        file on SQLite, of the tables on PostgreSQL), waits at most a second for each, and runs an INSERT of no rows for each
        table. It then commits a write that must reach the disk and a synchronous standby. The commit has no time limit, so
        callers should not block on this method.
        """
        if self._wrote_just_now():
            return None
        try:
            with self._engine.connect() as connection, self._turn_taken(_TRIAL_WAIT_MS / 1000):
                (_try_on_postgresql if self._turn is None else _try_on_sqlite)(connection, tables)
        except DatabaseUnavailable as error:
            return None if self._wrote_just_now() else str(error)
        except SQLAlchemyError as error:
            return in_one_line(error)
        return None

    def _wrote_just_now(self) -> bool:
        return self._written_s is not None and self._now_s() - self._written_s < _JUST_NOW_S

    def _forget_schema_after(self, error: SQLAlchemyError) -> None:
        """Drops SQLite's connections after an error that an outdated schema may have caused.

        SQLite detects a changed schema when it runs a statement. If a broken trigger makes the statement fail earlier, the
        connection keeps failing even after the trigger has been dropped.
        """
        if self._turn is not None and isinstance(error, OperationalError):
            self._engine.dispose()


def in_one_line(error: BaseException) -> str:
    """Returns the database's message in one line, without the statement."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def _nothing_written(error: SQLAlchemyError) -> DatabaseUnavailable:
    return (DatabaseRefusal if is_refusal(error) else DatabaseUnavailable)(in_one_line(error))


def _is_surely_undone(error: SQLAlchemyError) -> bool:
    """Returns True if a statement with autocommit has certainly written nothing.

    That is the case after an error of severity ERROR. A lost connection, or an error of severity FATAL, may have come after the
    commit.
    """
    report = getattr(getattr(error, "orig", None), "diag", None)
    return getattr(report, "severity_nonlocalized", None) == "ERROR"


def _commit_in_database(connection: Connection) -> None:
    try:
        connection.commit()
    except SQLAlchemyError as error:
        # A pooled connection might still have the transaction open, with its locks.
        connection.invalidate()
        raise (DatabaseRefusal if is_refusal(error) else OutcomeUnknown)(in_one_line(error)) from error


def _try_on_postgresql(connection: Connection, tables: Collection[Table]) -> None:
    """Takes the locks, and commits a logical message, because a transaction without WAL records does not wait for a standby.

    Raises SQLAlchemyError.
    """
    connection.execute(text(f"SET LOCAL lock_timeout = {_TRIAL_WAIT_MS}"))
    connection.execute(text(f"SET LOCAL statement_timeout = {2 * _TRIAL_WAIT_MS}"))
    _insert_no_rows(connection, tables)
    connection.execute(select(func.pg_logical_emit_message(true(), "readiness", "")))
    connection.commit()


def _try_on_sqlite(connection: Connection, tables: Collection[Table]) -> None:
    """Takes the lock, and commits, because SQLite detects a full or read-only disk only when it writes the log.

    Rewrites the file's header page without changes. Raises SQLAlchemyError.
    """
    raw = connection.connection.cursor()
    (waits_ms,) = raw.execute("PRAGMA busy_timeout").fetchone()
    raw.execute(f"PRAGMA busy_timeout={_TRIAL_WAIT_MS}")
    try:
        _insert_no_rows(connection, tables)
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        connection.exec_driver_sql(f"PRAGMA user_version={version}")
        connection.commit()
    finally:
        connection.rollback()
        raw.execute(f"PRAGMA busy_timeout={waits_ms}")
        raw.close()


def _insert_no_rows(connection: Connection, tables: Collection[Table]) -> None:
    for table in tables:
        connection.execute(table.insert().from_select([column.name for column in table.c], table.select().where(false())))
