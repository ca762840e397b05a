import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, Table, event, text
from sqlalchemy.exc import OperationalError

from service_runtime.database.database_errors import DatabaseRefusal, DatabaseUnavailable, OutcomeUnknown
from service_runtime.database.engine import create_database_engine
from service_runtime.database.sessions import Sessions


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    made = create_database_engine(database_url)
    with made.begin() as connection:
        connection.execute(text("CREATE TABLE numbers (number INTEGER PRIMARY KEY)"))
        connection.execute(
            text("CREATE TABLE doubles (number INTEGER REFERENCES numbers (number) DEFERRABLE INITIALLY DEFERRED)")
        )
    yield made
    made.dispose()


@pytest.fixture
def sessions(engine: Engine) -> Sessions:
    return Sessions(engine, now_s=time.monotonic, acquire=None)


NUMBERS = Table("numbers", MetaData(), Column("number", Integer, primary_key=True))
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def write(sessions: Sessions, number: int, table: str = "numbers") -> None:
    with sessions.writing() as session:
        session.execute(text(f"INSERT INTO {table} VALUES ({number})"))


def numbers(sessions: Sessions) -> list[int]:
    with sessions.reading() as session:
        return list(session.execute(text("SELECT number FROM numbers ORDER BY number")).scalars())


def test_a_statement_that_fails_leaves_nothing_of_its_block(sessions: Sessions) -> None:
    def write_twice() -> None:
        with sessions.writing() as session:
            session.execute(text("INSERT INTO numbers VALUES (1)"))
            session.execute(text("INSERT INTO nowhere VALUES (1)"))

    with pytest.raises(DatabaseUnavailable, match="nowhere") as raised:
        write_twice()
    assert "\n" not in str(raised.value)
    assert numbers(sessions) == []


@ON_SQLITE
def test_a_trigger_that_was_broken_fails_no_write_once_it_is_gone(engine: Engine, sessions: Sessions) -> None:
    """A write succeeds as soon as a broken trigger has been removed.

    If preparing a statement fails, a SQLite connection does not detect that the schema has changed since.
    """
    write(sessions, 1)
    other = create_database_engine(str(engine.url))
    with other.begin() as connection:
        connection.execute(text("CREATE TRIGGER no BEFORE INSERT ON numbers BEGIN INSERT INTO nowhere VALUES (1); END"))
    with pytest.raises(DatabaseUnavailable, match="nowhere"):
        write(sessions, 2)
    with other.begin() as connection:
        connection.execute(text("DROP TRIGGER no"))
    other.dispose()
    write(sessions, 3)
    assert numbers(sessions) == [1, 3]


def test_an_error_of_the_block_itself_passes_through_and_nothing_is_written(sessions: Sessions) -> None:
    def write_and_change_ones_mind() -> None:
        with sessions.writing() as session:
            session.execute(text("INSERT INTO numbers VALUES (1)"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_change_ones_mind()
    assert numbers(sessions) == []


def test_a_database_commit_that_the_database_refuses_leaves_no_lock_behind(sessions: Sessions) -> None:
    with pytest.raises(DatabaseRefusal):
        write(sessions, 1, table="doubles")
    write(sessions, 1)
    assert numbers(sessions) == [1]


def test_a_database_commit_without_an_answer_leaves_the_outcome_unknown(sessions: Sessions, engine: Engine) -> None:
    def lose_connection(_connection: object) -> None:
        raise OperationalError("COMMIT", None, Exception("server closed the connection\nunexpectedly"))

    event.listen(engine, "commit", lose_connection)
    with pytest.raises(OutcomeUnknown, match="server closed the connection unexpectedly") as raised:
        write(sessions, 1)
    assert isinstance(raised.value.__cause__, OperationalError)


@ON_POSTGRESQL
def test_a_server_that_dies_before_the_database_commit_leaves_the_outcome_unknown(sessions: Sessions, engine: Engine) -> None:
    def write_while_the_server_dies() -> None:
        with sessions.writing() as session:
            own = session.execute(text("SELECT pg_backend_pid()")).scalar_one()
            with engine.connect() as other:
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": own})

    with pytest.raises(OutcomeUnknown):
        write_while_the_server_dies()
    assert sessions.why_unwritable([NUMBERS]) is None


@ON_POSTGRESQL
def test_a_session_that_reads_one_moment_does_not_see_what_is_written_meanwhile(engine: Engine) -> None:
    sessions = Sessions(engine, now_s=time.monotonic, acquire=None, reads_one_moment=True)
    with sessions.reading() as session:
        count = text("SELECT count(*) FROM numbers")
        assert session.execute(count).scalar_one() == 0
        write(sessions, 1)
        assert session.execute(count).scalar_one() == 0


@ON_SQLITE
def test_a_writer_does_not_wait_for_ever_for_one_that_hangs(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service_runtime.database.sessions._TURN_TIMEOUT_S", 0.05)
    with sessions.writing(), ThreadPoolExecutor(1) as threads:
        late = threads.submit(write, sessions, 1)
        with pytest.raises(DatabaseUnavailable, match="write lock"):
            late.result(30)
    assert numbers(sessions) == []
    write(sessions, 2)


def test_a_statement_that_cannot_be_read_is_a_failure_of_the_database(sessions: Sessions) -> None:
    with pytest.raises(DatabaseUnavailable), sessions.reading() as session:
        session.execute(text("SELECT nothing FROM nowhere"))


def test_a_database_can_be_written_until_it_is_gone_and_the_trial_leaves_no_row(engine: Engine, sessions: Sessions) -> None:
    assert sessions.why_unwritable([NUMBERS]) is None
    assert numbers(sessions) == []

    def refuse(*_: object) -> None:
        raise OperationalError("connect", None, Exception("refused"))

    event.listen(engine, "before_cursor_execute", refuse)
    assert sessions.why_unwritable([NUMBERS]) is not None


def test_a_trial_leaves_waits_and_locks_as_they_were(sessions: Sessions, engine: Engine) -> None:
    def waits() -> list[object]:
        names = ["busy_timeout"] if engine.dialect.name == "sqlite" else ["lock_timeout", "statement_timeout"]
        with engine.connect() as connection:
            show = "PRAGMA" if engine.dialect.name == "sqlite" else "SHOW"
            return [connection.exec_driver_sql(f"{show} {name}").scalar() for name in names]

    before = waits()
    assert sessions.why_unwritable([NUMBERS]) is None
    assert waits() == before
    write(sessions, 1)


def test_a_database_that_others_keep_locked_takes_no_rows(sessions: Sessions, engine: Engine) -> None:
    with engine.connect() as other:
        lock = "SELECT 1" if engine.dialect.name == "sqlite" else "LOCK TABLE numbers IN ACCESS EXCLUSIVE MODE"
        other.exec_driver_sql(lock)
        assert "lock" in (sessions.why_unwritable([NUMBERS]) or "")
        other.rollback()
    assert sessions.why_unwritable([NUMBERS]) is None


def test_what_was_just_written_is_the_answer(sessions: Sessions, engine: Engine) -> None:
    write(sessions, 1)
    with engine.connect() as other:
        other.exec_driver_sql("SELECT 1" if engine.dialect.name == "sqlite" else "LOCK TABLE numbers IN ACCESS EXCLUSIVE MODE")
        assert sessions.why_unwritable([NUMBERS]) is None


@ON_POSTGRESQL
def test_a_database_that_is_read_only_takes_no_rows(sessions: Sessions, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE "{engine.url.database}" SET default_transaction_read_only = on')
    engine.dispose()
    assert "read-only" in (sessions.why_unwritable([NUMBERS]) or "")


@ON_POSTGRESQL
def test_a_database_whose_commits_wait_for_a_standby_that_is_gone_takes_no_rows(sessions: Sessions, database_url: str) -> None:
    with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as operator, ThreadPoolExecutor(1) as asking:
        operator.execute("SET synchronous_commit = local")
        try:
            operator.execute("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
            operator.execute("SELECT pg_reload_conf()")
            deadline_s = time.monotonic() + 20
            while is_answered(answer := asking.submit(sessions.why_unwritable, [NUMBERS])):
                assert time.monotonic() < deadline_s, "a commit that hangs was no obstacle"
        finally:
            operator.execute("ALTER SYSTEM RESET synchronous_standby_names")
            operator.execute("SELECT pg_reload_conf()")
        assert answer.result(20) is None, "all is well once the standby is not needed any more"


def is_answered(answer: "Future[str | None]") -> bool:
    """Returns True if the result is available within a second."""
    return bool(wait([answer], timeout=1).done)


@ON_POSTGRESQL
def test_a_role_that_may_not_insert_is_told(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP ROLE IF EXISTS reader")
        connection.exec_driver_sql("CREATE ROLE reader LOGIN")
        connection.exec_driver_sql("GRANT SELECT ON numbers TO reader")
    reader = create_database_engine(engine.url.set(username="reader").render_as_string())
    assert "permission denied" in (Sessions(reader, now_s=time.monotonic, acquire=None).why_unwritable([NUMBERS]) or "")
    reader.dispose()
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP OWNED BY reader")
        connection.exec_driver_sql("DROP ROLE reader")


@ON_SQLITE
def test_a_trial_writes_to_the_disk_on_sqlite_so_that_a_full_one_is_noticed(sessions: Sessions, engine: Engine) -> None:
    log = Path(f"{engine.url.database}-wal")
    before = log.stat().st_size
    assert sessions.why_unwritable([NUMBERS]) is None
    assert log.stat().st_size > before
