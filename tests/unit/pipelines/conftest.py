"""One Spark session for the tests of the pipelines, and databases made as the services make theirs."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.session import spark_session

JVM_FOR_SMALL_TABLES = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""Compiling for a long run costs more than it brings where a table has ten rows."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    if shutil.which("java") is None:
        pytest.skip("no java on the PATH: apt-get install openjdk-17-jre-headless")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", JVM_FOR_SMALL_TABLES)
        with spark_session("local[1]") as session:
            session.conf.set("spark.sql.shuffle.partitions", "1")
            yield session


class ShopDatabases:
    """Both databases as SQLite files, with the columns of the services' migrations; unique constraints left out on purpose."""

    def __init__(self, directory: Path) -> None:
        self.orders_path = directory / "orders.db"
        self.credits_path = directory / "credits.db"
        self.orders = sqlite3.connect(self.orders_path)
        self.credits = sqlite3.connect(self.credits_path)
        for connection in (self.orders, self.credits):
            connection.execute("PRAGMA journal_mode = WAL")
        self.orders.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id VARCHAR(36), customer VARCHAR(100),"
            " total_cents BIGINT, currency VARCHAR(3), idempotency_key VARCHAR(255), created_at_ms BIGINT)"
        )
        self.orders.execute(
            "CREATE TABLE transactions"
            " (transaction_id VARCHAR(64) PRIMARY KEY, order_id VARCHAR(36), state VARCHAR(16), created_at_ms BIGINT)"
        )
        self.credits.execute(
            "CREATE TABLE credits (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id VARCHAR(36), customer VARCHAR(100),"
            " points BIGINT, amount_cents BIGINT, message_id VARCHAR(64), transaction_id VARCHAR(64), created_at_ms BIGINT)"
        )

    @property
    def orders_url(self) -> str:
        return f"sqlite:///{self.orders_path}"

    @property
    def credits_url(self) -> str:
        return f"sqlite:///{self.credits_path}"

    def add_orders(self, order_ids: list[str], *, total_cents: int = 1250, at_ms: int = 1, state: str = "COMMITTED") -> None:
        self.orders.executemany(
            "INSERT INTO orders (order_id, customer, total_cents, currency, created_at_ms) VALUES (?, 'ada', ?, 'EUR', ?)",
            [(order_id, total_cents, at_ms) for order_id in order_ids],
        )
        self.orders.executemany(
            "INSERT INTO transactions VALUES (?, ?, ?, ?)",
            [(f"transaction of {order_id}", order_id, state, at_ms) for order_id in order_ids],
        )
        self.orders.commit()

    def add_credits(self, order_ids: list[str], *, amount_cents: int = 1250, at_ms: int = 1) -> None:
        self.credits.executemany(
            "INSERT INTO credits (order_id, customer, points, amount_cents, message_id, created_at_ms)"
            " VALUES (?, 'ada', ?, ?, 'message', ?)",
            [(order_id, amount_cents // 100, amount_cents, at_ms) for order_id in order_ids],
        )
        self.credits.commit()

    def close(self) -> None:
        self.orders.close()
        self.credits.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ShopDatabases]:
    databases = ShopDatabases(tmp_path)
    yield databases
    databases.close()
