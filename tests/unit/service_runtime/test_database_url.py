"""The services' engines and the pipelines' addresses follow the same rule for database URLs."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from sqlalchemy import create_engine

from pipelines.errors import UnusableDatabaseUrl
from pipelines.sources.databases.database_url import parse_database_url as pipelines_address
from service_runtime.database.database_url import UnusableUrl, masked, parse_database_url
from service_runtime.database.engine import DatabaseUnusable, create_database_engine

POSTGRESQL = [
    "postgresql://ann:s3cret@db:5433/orders",
    "postgres://ann:s3cret@db:5433/orders",
    "postgresql+psycopg://ann:s3cret@db:5433/orders",
    "postgresql+psycopg2://ann:s3cret@db:5433/orders",
    "postgresql+asyncpg://ann:s3cret@db:5433/orders",
    " postgresql://ann:s3cret@db:5433/orders\n",
    "postgresql://db:5433/orders?user=ann&password=s3cret",
    "postgresql://ann:s3cret@/orders?host=db&port=5433",
    "postgresql://ann:s3cret@/orders?host=db:5433",
]
USABLE = [
    *POSTGRESQL,
    "postgresql://ann@db",
    "postgresql:///orders",
    "postgresql://ann:p%40ss%2Fw%3Ard%23%25@[::1]:5432/my%20orders",
    "postgresql:///orders?host=/var/run/postgresql",
    "postgresql:///orders?host=one:5432&host=two:5433",
    "postgresql://ann@db/orders?sslmode=require&connect_timeout=3",
    "postgresql://ann@pool:6432/orders?pgbouncer=true",
    "postgresql://ann@db/orders?pgbouncer=false&options=-c%20search_path%3Dshop",
    "sqlite:///data/orders.db",
    "sqlite:////var/lib/my%20orders.db",
    "sqlite+pysqlite:///data/orders.db",
    "sqlite+aiosqlite:///data/orders.db",
]
UNUSABLE = [
    ("", "invalid database URL"),
    ("orders.db", "invalid database URL"),
    ("postgresql://ann:s3cret@db:port/orders", "invalid database URL"),
    ("postgresql://ann:s3cret@one:1,two:2/orders", "invalid database URL"),
    ("postgresql://ann:s3cret@db:70000/orders", "invalid port 70000"),
    ("postgresql://ann:s3@cret@db/orders", "more than one @"),
    ("mysql://ann:s3cret@db/orders", "unsupported database 'mysql'"),
    ("nothing://s3cret", "unsupported database 'nothing'"),
    ("postgresql://ann:s3cret@db/orders?pgbouncer=yes", "pgbouncer of the database URL must be true or false"),
    ("postgresql://ann:s3cret@db/orders?pgbouncer=true&pgbouncer=false", "must not be repeated"),
    ("postgresql://ann:s3cret@db/orders?pgbouncer=true&options=-c%20a%3Db", "pgbouncer=true must not contain options"),
    ("sqlite://", "in-memory"),
    ("sqlite:///:memory:", "in-memory"),
    ("sqlite://orders.db", "three slashes"),
    ("sqlite://data/orders.db", "three slashes"),
    ("sqlite:///data/orders.db?mode=ro", "without parameters"),
    ("sqlite:///file:data/orders.db?uri=true", "without parameters"),
]


def libpq_keywords(url: str) -> dict[str, str]:
    """Returns the connection parameters that the services' driver gets."""
    engine = create_database_engine(url)
    (_, keywords) = engine.dialect.create_connect_args(engine.url)
    assert keywords.pop("client_encoding") == "UTF8"
    return {name: str(value) for name, value in keywords.items() if name != "context"}


def keywords_of_pipelines(url: str) -> dict[str, str]:
    """Returns the connection parameters that the pipelines' driver gets, as libpq parses a URI."""
    parts = urlsplit(pipelines_address(url).uri)
    place = {"host": parts.hostname, "port": parts.port, "user": parts.username, "dbname": parts.path.lstrip("/")}
    named = {name: str(value) for name, value in place.items() if value}
    told = {**named, **dict(parse_qsl(parts.query))}
    assert told.pop("client_encoding") == "UTF8"
    return told


@pytest.mark.parametrize("url", POSTGRESQL)
def test_all_usual_forms_mean_the_same_database(url: str) -> None:
    expected = {"host": "db", "port": "5433", "user": "ann", "password": "s3cret", "dbname": "orders"}
    assert libpq_keywords(url) == expected
    assert {**keywords_of_pipelines(url), "connect_timeout": "10"} == {**expected, "connect_timeout": "10"}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://ann:p%40ss%2Fw%3Ard%23%25@[::1]:5432/my%20orders",
            {"host": "::1", "port": "5432", "user": "ann", "password": "p@ss/w:rd#%", "dbname": "my orders"},
        ),
        ("postgresql:///orders?host=/var/run/postgresql", {"host": "/var/run/postgresql", "dbname": "orders"}),
        ("postgresql:///orders?host=one:5432&host=two:5433", {"host": "one,two", "port": "5432,5433", "dbname": "orders"}),
        ("postgresql://ann@db/orders?sslmode=require", {"host": "db", "user": "ann", "dbname": "orders", "sslmode": "require"}),
        ("postgresql://ann@pool/orders?pgbouncer=true", {"host": "pool", "user": "ann", "dbname": "orders"}),
        ("postgresql://ann@db/orders?client_encoding=latin1", {"host": "db", "user": "ann", "dbname": "orders"}),
    ],
)
def test_services_and_pipelines_tell_their_drivers_the_same(url: str, expected: dict[str, str]) -> None:
    assert libpq_keywords(url) == expected
    told = keywords_of_pipelines(url)
    told["dbname"] = told["dbname"].replace("%20", " ")
    assert told == {**expected, "connect_timeout": "10"}


@pytest.mark.parametrize(
    ("url", "path"),
    [("sqlite:///data/orders.db", "data/orders.db"), ("sqlite:////var/lib/my%20orders.db", "/var/lib/my orders.db")],
)
def test_a_sqlite_url_is_a_path(url: str, path: str) -> None:
    assert parse_database_url(url).database == path
    assert pipelines_address(url).name.endswith(path)


@pytest.mark.parametrize(("url", "words"), UNUSABLE)
def test_what_is_no_database_is_refused_by_all_in_one_line_that_repeats_no_secret(url: str, words: str) -> None:
    said = set()
    for read, error in (
        (parse_database_url, UnusableUrl),
        (create_database_engine, DatabaseUnusable),
        (pipelines_address, UnusableDatabaseUrl),
    ):
        with pytest.raises(error, match=words) as raised:
            read(url)  # type: ignore[operator]
        said.add(str(raised.value))
    (sentence,) = said
    assert "\n" not in sentence
    assert "s3" not in sentence


def test_what_the_url_says_of_waits_wins_over_ours() -> None:
    engine = create_database_engine("postgresql://db/orders?connect_timeout=77&options=-c%20search_path%3Dshop")
    assert engine.url.query["connect_timeout"] == "77"
    told: dict[str, object] = {}
    engine.dialect.connect = lambda *_, **keywords: told.update(keywords) or (_ for _ in ()).throw(ConnectionError)  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        engine.connect()
    assert told["connect_timeout"] == "77"
    assert str(told["options"]).endswith("idle_in_transaction_session_timeout=30000 -c search_path=shop")


@pytest.mark.parametrize("url", USABLE)
def test_a_url_that_is_read_is_read_again_in_the_form_it_is_given(url: str) -> None:
    read = parse_database_url(url)
    assert parse_database_url(read.render_as_string(hide_password=False)) == read
    create_engine(read)


def test_a_masked_url_shows_its_hosts_but_neither_password_nor_other_parameters() -> None:
    url = masked("postgresql+psycopg://ann:hunter2@db:5432/orders?password=hunter3")
    assert url == "postgresql+psycopg://ann:***@db:5432/orders"
    hosts = "?host=one%3A5432&host=two%3A5433"
    assert masked(f"postgresql://ann:hunter2@/orders{hosts}&password=hunter3") == f"postgresql+psycopg://ann:***@/orders{hosts}"
    assert masked("postgresql:///orders?host=db&port=5433") == "postgresql+psycopg:///orders?host=db&port=5433"
    assert "hunter" not in masked("postgresql://ann:hunter2@one:1,two:2/orders")
    assert "hunter" not in masked("ann:hunter2@")
    assert "2@" not in masked("postgresql://ann:hunter@2@db/orders")
