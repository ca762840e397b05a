"""Rows of several tables are written together or not at all; on PostgreSQL by one statement, which is one round trip."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import BigInteger, Column, Engine, ForeignKey, Integer, MetaData, String, Table, event, select, text

from service_runtime.database.columns import ROW_ID
from service_runtime.database.database_errors import DatabaseRefusal, DatabaseUnavailable, OutcomeUnknown
from service_runtime.database.engine import create_database_engine
from service_runtime.database.rows_together import RowsTogether
from service_runtime.database.sessions import Sessions

TABLES = MetaData()
DECISIONS = Table("decisions", TABLES, Column("key", String(20), primary_key=True), Column("at", BigInteger))
BOOKS = Table("books", TABLES, Column("title", String(20), primary_key=True), Column("note", String(20)))
PAGES = Table(
    "pages",
    TABLES,
    Column("id", ROW_ID, primary_key=True),
    Column("title", String(20), ForeignKey(BOOKS.c.title)),
    Column("number", Integer, nullable=False),
)
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    made = create_database_engine(database_url)
    TABLES.create_all(made)
    yield made
    made.dispose()


@pytest.fixture
def sessions(engine: Engine) -> Sessions:
    return Sessions(engine, now_s=time.monotonic, acquire=None)


def a_book(key: str = "key-1", title: str = "Dune", numbers: tuple[int | None, ...] = (3, 1, 2)) -> RowsTogether:
    book = {"title": title, "note": None}
    pages = [{"title": title, "number": number} for number in numbers]
    return RowsTogether(DECISIONS, {"key": key, "at": 2**40}, [(BOOKS, [book]), (PAGES, pages)], unless="key")


def rows(engine: Engine) -> list[list[object]]:
    with engine.connect() as connection:
        decisions = connection.execute(select(DECISIONS.c.key).order_by(DECISIONS.c.key))
        books = connection.execute(select(BOOKS.c.title).order_by(BOOKS.c.title))
        pages = connection.execute(select(PAGES.c.number).order_by(PAGES.c.id))
        return [list(found.scalars()) for found in (decisions, books, pages)]


def ended_waiting_connections(engine: Engine) -> int:
    waiting = "wait_event_type = 'Lock' AND datname = current_database()"
    with engine.connect() as connection:
        return len(connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {waiting}")).all())


def test_all_rows_are_there_and_keep_their_order(sessions: Sessions, engine: Engine) -> None:
    assert sessions.write_together(a_book())
    assert rows(engine) == [["key-1"], ["Dune"], [3, 1, 2]]
    assert sessions.why_unwritable([]) is None


def test_a_first_row_that_is_there_keeps_all_others_out(sessions: Sessions, engine: Engine) -> None:
    assert sessions.write_together(a_book())
    assert not sessions.write_together(a_book(title="Emma"))
    assert rows(engine) == [["key-1"], ["Dune"], [3, 1, 2]]


def test_a_row_that_is_refused_keeps_the_first_one_out(sessions: Sessions, engine: Engine) -> None:
    assert sessions.write_together(a_book())
    with pytest.raises(DatabaseRefusal, match="books"):
        sessions.write_together(a_book("key-2"))
    with pytest.raises(DatabaseUnavailable, match="number"):
        sessions.write_together(a_book("key-3", "Emma", (1, None)))
    assert rows(engine) == [["key-1"], ["Dune"], [3, 1, 2]]


def test_without_a_condition_a_first_row_that_is_there_is_refused(sessions: Sessions, engine: Engine) -> None:
    assert sessions.write_together(a_book())
    again = RowsTogether(DECISIONS, {"key": "key-1", "at": 1}, [(BOOKS, [{"title": "Emma", "note": "x"}])])
    with pytest.raises(DatabaseRefusal, match="decisions"):
        sessions.write_together(again)
    assert rows(engine)[1] == ["Dune"]


def test_of_two_that_come_at_once_one_is_written(sessions: Sessions, engine: Engine) -> None:
    start = threading.Barrier(4)

    def write(number: int) -> bool:
        start.wait()
        return sessions.write_together(a_book(title=f"book {number}"))

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(write, range(4))) == [False, False, False, True]
    assert [len(found) for found in rows(engine)] == [1, 1, 3]


@ON_POSTGRESQL
def test_it_is_one_statement(sessions: Sessions, engine: Engine) -> None:
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda _1, _2, statement, *_: statements.append(statement))
    event.listen(engine, "commit", lambda _: statements.append("COMMIT"))
    sessions.write_together(a_book())
    (statement,) = statements
    assert statement.count("INSERT") == 3


@ON_POSTGRESQL
def test_a_wait_for_a_lock_that_becomes_too_long_has_written_nothing(sessions: Sessions, engine: Engine) -> None:
    impatient = create_database_engine(f"{engine.url.render_as_string()}?options=-c%20lock_timeout%3D50")
    with engine.connect() as other:
        other.exec_driver_sql("LOCK TABLE pages IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DatabaseUnavailable, match="lock timeout"):
            Sessions(impatient, now_s=time.monotonic, acquire=None).write_together(a_book())
        other.rollback()
    impatient.dispose()
    assert rows(engine) == [[], [], []]


@ON_POSTGRESQL
def test_a_connection_that_ends_meanwhile_leaves_the_outcome_unknown(sessions: Sessions, engine: Engine) -> None:
    with engine.connect() as other, ThreadPoolExecutor(1) as threads:
        other.exec_driver_sql("LOCK TABLE pages IN ACCESS EXCLUSIVE MODE")
        waiting = threads.submit(sessions.write_together, a_book())
        while not ended_waiting_connections(engine):
            assert not waiting.done()
            time.sleep(0.01)
        with pytest.raises(OutcomeUnknown, match="terminating connection"):
            waiting.result(30)
        other.rollback()
    assert rows(engine) == [[], [], []]
    assert sessions.write_together(a_book())


@ON_POSTGRESQL
def test_a_server_that_cannot_be_reached_was_sent_nothing(engine: Engine) -> None:
    nowhere = create_database_engine(engine.url.set(port=1).render_as_string())
    with pytest.raises(DatabaseUnavailable):
        Sessions(nowhere, now_s=time.monotonic, acquire=None).write_together(a_book())
