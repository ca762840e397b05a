"""Tests unusual databases, such as one with another encoding or one behind a PgBouncer.

Each database works, or one sentence explains why it does not.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, make_url, text

from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS, OrderDatabase
from order_service.service_layer.attempt import TransactionFailed
from pipelines.sources.databases.adbc import read_columns
from pipelines.sources.databases.database_url import parse_database_url
from rocketmq_broker.world import World
from service_runtime.database.engine import DatabaseUnusable, create_database_engine
from service_runtime.database.opening import migrate_database, open_database
from service_runtime.database.sessions import Sessions
from tests.component.order_service.conftest import an_order
from tests.postgresql_server import behind_pgbouncer, new_database, pgbouncer

NAME = "李雷 🍎 Zoë"


def database(encoding: str = "UTF8") -> str:
    url = new_database(encoding)
    if url is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    return url


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "WIN1252", "EUC_JP"])
def test_a_database_that_lacks_letters_is_refused_before_it_is_migrated(encoding: str) -> None:
    url = database(encoding)
    for work in (migrate_database, open_database):
        with pytest.raises(DatabaseUnusable) as refused:
            work(url, migrations=MIGRATIONS, start_timeout_s=60)
        assert f"the database's encoding is {encoding}, but UTF8 is required" in str(refused.value)
        assert "\n" not in str(refused.value)
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


@pytest.mark.parametrize("parameters", ["", "?client_encoding=latin1", "?options=-c%20client_encoding%3Dlatin1"])
def test_what_the_shell_or_the_url_say_of_encodings_changes_no_name(parameters: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    engine = create_database_engine(database() + parameters)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT :name"), {"name": NAME}).scalar_one() == NAME
    engine.dispose()


@pytest.mark.parametrize("parameters", ["", "?pgbouncer=true"])
def test_a_server_that_serializes_by_default_does_not_choose_for_the_services(parameters: str) -> None:
    url = database()
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {make_url(url).database} SET default_transaction_isolation = 'serializable'".encode())
    engine = create_database_engine(url + parameters)
    isolations = []
    for options in ({}, *([{"isolation_level": "AUTOCOMMIT"}] if not parameters else [])):
        with engine.execution_options(**options).connect() as connection:
            isolations.append(connection.exec_driver_sql("SHOW transaction_isolation").scalar_one())
    engine.dispose()
    assert set(isolations) == {"read committed"}


def test_a_sqlite_that_is_too_old_is_one_sentence_before_a_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SQLite that is too old, such as 3.26 on RHEL 8, is refused with one sentence before a file is created."""
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 26, 0))
    monkeypatch.setattr("sqlite3.sqlite_version", "3.26.0")
    for work in (migrate_database, open_database):
        with pytest.raises(DatabaseUnusable, match=r"^this Python has SQLite 3\.26\.0, but 3\.35\.0 or newer is required; "):
            work(f"sqlite:///{tmp_path}/orders.db", migrations=MIGRATIONS, start_timeout_s=60)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[str]:
    """Yields the URL of a database behind a PgBouncer."""
    program = pgbouncer()
    if program is None:
        pytest.skip("no PgBouncer here: apt-get install pgbouncer")
    with behind_pgbouncer(program, database(), tmp_path) as url:
        yield url


@pytest.fixture
def engine(pooled: str) -> Iterator[Engine]:
    opened = open_database(f"{pooled}?pgbouncer=true", migrations=MIGRATIONS, start_timeout_s=60)
    yield opened
    opened.dispose()


def test_a_pgbouncer_that_the_url_does_not_name_is_one_sentence_and_no_wait(pooled: str) -> None:
    with pytest.raises(
        DatabaseUnusable, match=r"unsupported startup parameter: options\. The server is a PgBouncer: add pgbouncer=true"
    ):
        open_database(pooled, migrations=MIGRATIONS, start_timeout_s=3600)


def test_statements_are_repeated_on_whatever_session_pgbouncer_gives(engine: Engine) -> None:
    """A repeated statement succeeds on every session of PgBouncer, because it is not prepared on one of them."""
    for _ in range(20):
        with engine.connect() as one, engine.connect() as other:
            assert one.execute(text("SELECT :name"), {"name": NAME}).scalar_one() == NAME
            assert other.execute(text("SELECT :name"), {"name": NAME}).scalar_one() == NAME


def test_each_transaction_bounds_its_waits_and_leaves_nothing_behind(engine: Engine, pooled: str) -> None:
    with engine.connect() as connection:
        for name, value in (("lock_timeout", "5s"), ("statement_timeout", "15s"), ("idle_in_transaction_session_timeout", "30s")):
            assert connection.exec_driver_sql(f"SHOW {name}").scalar_one() == value
    with psycopg.connect(pooled.replace("+psycopg", "")) as session:
        assert session.execute("SHOW lock_timeout").fetchone() == ("0",)


def test_sessions_read_and_try_writes_behind_pgbouncer(engine: Engine) -> None:
    sessions = Sessions(engine, now_s=World().steady_s, acquire=None, reads_one_moment=True)
    for _ in range(10):
        with sessions.reading() as session:
            assert session.connection().exec_driver_sql("SHOW transaction_isolation").scalar_one() == "repeatable read"
        assert sessions.why_unwritable([]) is None


def test_an_order_is_written_as_a_whole_and_once_behind_pgbouncer(engine: Engine) -> None:
    OrderDatabase.metadata.create_all(engine)
    store = SqlOrderStore(engine, World())

    def is_written(number: int) -> bool:
        try:
            store.store_order(an_order(f"order-{number}"), f"transaction-{number}")
        except TransactionFailed:
            return False
        return True

    with ThreadPoolExecutor(16) as writers:
        assert list(writers.map(is_written, range(16))) == [True] * 16
        assert list(writers.map(is_written, range(16))) == [False] * 16
    orders, _ = store.list_orders("ada", limit=50, before=None)
    assert [len(order.items) for order in orders] == [2] * 16


@pytest.mark.parametrize("parameters", ["", "?pgbouncer=true"])
def test_readers_of_books_beside_each_other_get_each_their_own_table_behind_pgbouncer(pooled: str, parameters: str) -> None:
    tables = [f"table_{number}" for number in range(16)]
    with psycopg.connect(pooled.replace("+psycopg", "")) as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table} AS SELECT '{table} {NAME}'::text AS name".encode())
    address = parse_database_url(pooled + parameters)

    def names(table: str) -> list[str]:
        return [name for batch in read_columns(address, table, {"name": "string"}) for name in batch.column("name").to_pylist()]

    with ThreadPoolExecutor(len(tables)) as readers:
        for _ in range(10):
            assert list(readers.map(names, tables)) == [[f"{table} {NAME}"] for table in tables]


def test_books_in_another_encoding_are_read_as_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    url = database("LATIN1")
    with psycopg.connect(url.replace("+psycopg", ""), client_encoding="utf8") as connection:
        connection.execute("CREATE TABLE people AS SELECT 'Zoë'::text AS name")
    (batch,) = read_columns(parse_database_url(url), "people", {"name": "string"})
    assert batch.column("name").to_pylist() == ["Zoë"]
