"""Tests reconciliation against a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.parquet
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pipelines.sources.databases.database_source import TableSource
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.databases.tables import read_unreadable_values, read_wrong_balances
from pipelines.sources.reading import read_here
from tests.foreign.postgresql.postgres import PASSWORD, PASSWORD_IN_URL, binaries, running_postgres
from tests.foreign.spark.test_reconcile_command import pipelines

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1000),
    pytest.mark.skipif(binaries() is None, reason="no PostgreSQL in /usr/lib/postgresql: apt-get install postgresql"),
]

SCHEMA = StructType([StructField("order_id", StringType()), StructField("total_cents", LongType())])
ORDERS = """
CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, order_id VARCHAR(36) UNIQUE, customer VARCHAR(100), total_cents BIGINT,
    currency CHAR(3), idempotency_key VARCHAR(255) UNIQUE, created_at_ms BIGINT,
    state VARCHAR(16) NOT NULL DEFAULT 'PLACED', pay_until_ms BIGINT, paid_at_ms BIGINT, ended_at_ms BIGINT);
CREATE TABLE transactions (transaction_id VARCHAR(64) PRIMARY KEY, order_id VARCHAR(36), state VARCHAR(16), created_at_ms BIGINT,
    kind VARCHAR(16) NOT NULL DEFAULT 'order');
INSERT INTO orders (order_id, customer, total_cents, currency, created_at_ms)
    SELECT 'order ' || n, 'ada', n, 'EUR', 1700000000000 + n FROM generate_series(1, 1000) AS n;
CREATE TABLE order_items (id BIGSERIAL PRIMARY KEY, order_id VARCHAR(36), name VARCHAR(200), quantity INTEGER,
    price_cents BIGINT);
INSERT INTO order_items (order_id, name, quantity, price_cents)
    SELECT 'order ' || n, 'pin', n, 1 FROM generate_series(1, 1000) AS n;
INSERT INTO transactions
    SELECT 'transaction ' || n, 'order ' || n, 'COMMITTED', 1700000000000 + n FROM generate_series(1, 1000) AS n;
INSERT INTO transactions SELECT 'marker ' || n, NULL, 'ROLLED_BACK', 1700000000000 + n FROM generate_series(1, 10) AS n;
"""
CREDITS = """
CREATE TABLE credits (id BIGSERIAL PRIMARY KEY, order_id VARCHAR(36), kind VARCHAR(16) NOT NULL DEFAULT 'credit',
    customer VARCHAR(100), points BIGINT, amount_cents BIGINT,
    message_id VARCHAR(64), transaction_id VARCHAR(64), created_at_ms BIGINT);
INSERT INTO credits (order_id, customer, points, amount_cents, message_id, transaction_id, created_at_ms)
    SELECT 'order ' || n, 'ada', n / 100, n, 'transaction ' || n, 'transaction ' || n, 1700000000000 + n
    FROM generate_series(1, 1000) AS n WHERE n <> 500;
CREATE TABLE balances (customer VARCHAR(100) PRIMARY KEY, points BIGINT);
INSERT INTO balances SELECT customer, SUM(points) FROM credits GROUP BY customer;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    programs = binaries()
    assert programs is not None
    with running_postgres(programs) as server:
        plain = server.url.replace("+psycopg", "")
        with psycopg.connect(f"{plain}/postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE orders")
            connection.execute("CREATE DATABASE credits")
        for name, script in (("orders", ORDERS), ("credits", CREDITS)):
            with psycopg.connect(f"{plain}/{name}") as connection:
                connection.execute(script.encode())
        yield server.url


def test_both_databases_are_compared_and_the_password_shows_nowhere(server: str, tmp_path: Path) -> None:
    databases = {"ORDER_DATABASE_URL": f"{server}/orders", "CREDIT_DATABASE_URL": f"{server}/credits"}
    done = pipelines("reconcile", "--output", "out", "--spark-log", "spark.log", cwd=tmp_path, **databases)
    assert done.returncode == 1, done.stderr
    (found,) = pyarrow.parquet.read_table(tmp_path / "out/findings").to_pylist()
    assert (found["order_id"], found["finding"], found["order_cents"]) == ("order 500", "missing_credit", 500)
    everything = (done.stdout + done.stderr).encode() + b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )
    for spelling in (PASSWORD, PASSWORD_IN_URL):
        assert spelling.encode() not in everything


def test_passwords_may_come_from_files(server: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    url = server.replace(f":{PASSWORD_IN_URL}@", "@")
    done = pipelines(
        "reconcile",
        "--output",
        "out",
        cwd=tmp_path,
        ORDER_DATABASE_URL=f"{url}/orders",
        CREDIT_DATABASE_URL=f"{url}/credits",
        ORDER_DATABASE_PASSWORD_FILE="password",
        CREDIT_DATABASE_PASSWORD_FILE="password",
    )
    assert done.returncode == 1, done.stderr
    assert "1 lost" in done.stdout


def test_a_password_file_that_is_not_there_is_one_line(server: str, tmp_path: Path) -> None:
    url = f"{server.replace(f':{PASSWORD_IN_URL}@', '@')}/orders"
    done = pipelines(
        "reconcile", cwd=tmp_path, ORDER_DATABASE_URL=url, CREDIT_DATABASE_URL=url, CREDIT_DATABASE_PASSWORD_FILE="absent"
    )
    assert (done.returncode, done.stderr) == (
        2,
        "could not tell: CREDIT_DATABASE_PASSWORD_FILE: cannot read absent: No such file or directory\n",
    )


def test_a_refused_password_is_one_line_that_does_not_repeat_it(server: str, tmp_path: Path) -> None:
    wrong = f"{server.replace(PASSWORD_IN_URL, 'topsecret')}/orders"
    done = pipelines("reconcile", cwd=tmp_path, ORDER_DATABASE_URL=wrong, CREDIT_DATABASE_URL=wrong)
    assert done.returncode == 2
    assert "password authentication failed for user" in done.stderr
    assert "topsecret" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_table_is_one_line(server: str, tmp_path: Path) -> None:
    url = f"{server}/credits"
    done = pipelines("reconcile", cwd=tmp_path, ORDER_DATABASE_URL=url, CREDIT_DATABASE_URL=url)
    assert done.returncode == 2
    assert 'relation "orders" does not exist' in done.stderr
    assert done.stderr.count("\n") == 1


def test_values_that_altered_columns_hold_are_named_and_hide_no_others(server: str) -> None:
    plain = server.replace("+psycopg", "")
    with psycopg.connect(f"{plain}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE odd")
    with psycopg.connect(f"{plain}/odd") as connection:
        connection.execute((ORDERS + CREDITS).encode())
        connection.execute("ALTER TABLE orders ALTER COLUMN total_cents TYPE numeric, ALTER COLUMN created_at_ms TYPE text")
        connection.execute("ALTER TABLE credits ALTER COLUMN points TYPE numeric")
        for number, value in enumerate(("'0.6'", "'NaN'", "'1e30'", "NULL", "'7.00'", "'Infinity'"), 1):
            connection.execute(f"UPDATE orders SET total_cents = {value} WHERE id = {number}".encode())
        connection.execute("UPDATE orders SET created_at_ms = '12abc' WHERE id = 9")
        connection.execute("UPDATE credits SET points = 21.9 WHERE id = 3")
    address = parse_database_url(f"{server}/odd")
    assert read_unreadable_values(address, address) == [
        "orders row 1: total_cents: 0.6",
        "orders row 2: total_cents: NaN",
        "orders row 3: total_cents: 1" + 30 * "0",
        "orders row 4: total_cents: NULL",
        "orders row 6: total_cents: Infinity",
        "orders row 9: created_at_ms: 12abc",
        "credits row 3: points: 21.9",
    ]
    read = read_here(TableSource, {**address.to_options(), "table": "orders", "key": "id"}, SCHEMA).sort_by("total_cents")
    assert read.column("total_cents").to_pylist()[:2] == [7, 7]
    assert read.num_rows == 1000
    assert [row["customer"] for row in read_wrong_balances(address).to_pylist()] == []


def test_balances_in_a_narrower_column_are_no_wrong_ones(server: str) -> None:
    """Balances in an `integer` column are not reported as wrong, although `integer << 32` shifts by 0 bits."""
    plain = server.replace("+psycopg", "")
    with psycopg.connect(f"{plain}/credits", autocommit=True) as connection:
        connection.execute("ALTER TABLE balances ALTER COLUMN points TYPE integer")
        try:
            assert read_wrong_balances(parse_database_url(f"{server}/credits")).num_rows == 0
        finally:
            connection.execute("ALTER TABLE balances ALTER COLUMN points TYPE bigint")
