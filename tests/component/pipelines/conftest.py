"""Fixtures with databases that have the services' tables."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pipelines.embedded import reconcile_embedded
from pipelines.judging.cut_off import CutOff
from pipelines.reconciliation import Books, ReconciliationOutcome
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.database_url import parse_database_url

Judge = Callable[[Books, CutOff, str], ReconciliationOutcome]


class ShopDatabases:
    """The order and credit databases as SQLite files.

    They have the columns of the services' migrations, but no unique constraints.
    """

    def __init__(self, directory: Path) -> None:
        self.orders_path = directory / "orders.db"
        self.credits_path = directory / "credits.db"
        self.orders = sqlite3.connect(self.orders_path)
        self.credits = sqlite3.connect(self.credits_path)
        for connection in (self.orders, self.credits):
            connection.execute("PRAGMA journal_mode = WAL")
        self.orders.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id VARCHAR(36), customer VARCHAR(100),"
            " total_cents BIGINT, currency VARCHAR(3), idempotency_key VARCHAR(255), created_at_ms BIGINT,"
            " state VARCHAR(16) NOT NULL DEFAULT 'PLACED', pay_until_ms BIGINT, paid_at_ms BIGINT, ended_at_ms BIGINT,"
            " ended_because VARCHAR(200))"
        )
        self.orders.execute(
            "CREATE TABLE order_items (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id VARCHAR(36), name VARCHAR(200),"
            " quantity INTEGER, price_cents BIGINT)"
        )
        self.orders.execute(
            "CREATE TABLE transactions"
            " (transaction_id VARCHAR(64) PRIMARY KEY, order_id VARCHAR(36), state VARCHAR(16), created_at_ms BIGINT,"
            " kind VARCHAR(16) NOT NULL DEFAULT 'order')"
        )
        self.credits.execute(
            "CREATE TABLE credits (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id VARCHAR(36),"
            " kind VARCHAR(16) NOT NULL DEFAULT 'credit', customer VARCHAR(100), points BIGINT,"
            " amount_cents BIGINT, message_id VARCHAR(64), transaction_id VARCHAR(64), created_at_ms BIGINT)"
        )
        self.credits.execute("CREATE TABLE balances (customer VARCHAR(100) PRIMARY KEY, points BIGINT)")

    @property
    def orders_url(self) -> str:
        return f"sqlite:///{self.orders_path}"

    @property
    def credits_url(self) -> str:
        return f"sqlite:///{self.credits_path}"

    @property
    def environment(self) -> dict[str, str]:
        """Both URLs, as the commands read them."""
        return {"ORDER_DATABASE_URL": self.orders_url, "CREDIT_DATABASE_URL": self.credits_url}

    @property
    def order_database(self) -> DatabaseAddress:
        return parse_database_url(self.orders_url)

    @property
    def credit_database(self) -> DatabaseAddress:
        return parse_database_url(self.credits_url)

    def books(self, *stores: Path, brokers: Sequence[str] = ()) -> Books:
        """Returns both databases, with these stores and brokers."""
        return Books(self.order_database, self.credit_database, stores, brokers=tuple(brokers))

    def add_orders(
        self, order_ids: list[str], *, total_cents: int = 1250, at_ms: int = 1, currency: str = "EUR", customer: str = "ada"
    ) -> None:
        """Adds orders with two items each, and their transactions. A transaction's id is "U-" and the order id."""
        self.orders.executemany(
            "INSERT INTO orders (order_id, customer, total_cents, currency, created_at_ms) VALUES (?, ?, ?, ?, ?)",
            [(order_id, customer, total_cents, currency, at_ms) for order_id in order_ids],
        )
        prices = ((2, total_cents // 2), (1, total_cents % 2))
        self.orders.executemany(
            "INSERT INTO order_items (order_id, name, quantity, price_cents) VALUES (?, 'book', ?, ?)",
            [(order_id, quantity, price) for order_id in order_ids for quantity, price in prices],
        )
        self.orders.executemany(
            "INSERT INTO transactions VALUES (?, ?, 'COMMITTED', ?, 'order')",
            [(f"U-{order_id}", order_id, at_ms) for order_id in order_ids],
        )
        self.orders.commit()

    def add_credits(self, order_ids: list[str], *, amount_cents: int = 1250, at_ms: int = 1, customer: str = "ada") -> None:
        """Adds credits of orders, and the customer's balance."""
        points = amount_cents // 100
        self.credits.executemany(
            "INSERT INTO credits (order_id, customer, points, amount_cents, message_id, transaction_id, created_at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(order_id, customer, points, amount_cents, f"U-{order_id}", f"U-{order_id}", at_ms) for order_id in order_ids],
        )
        self.credits.execute(
            "INSERT INTO balances VALUES (?, ?) ON CONFLICT (customer) DO UPDATE SET points = points + excluded.points",
            (customer, points * len(order_ids)),
        )
        self.credits.commit()

    def add_inbox(self) -> None:
        """Creates the table of the credit service's inbox, which older databases do not have."""
        self.credits.execute(
            "CREATE TABLE IF NOT EXISTS rocketmq_inbox (consumer VARCHAR(255) NOT NULL, message_key VARCHAR(255) NOT NULL,"
            " topic VARCHAR(255) NOT NULL, body BLOB NOT NULL, properties TEXT NOT NULL, status VARCHAR(16) NOT NULL,"
            " received_at_ms BIGINT NOT NULL, next_try_at_ms BIGINT NOT NULL, attempts INTEGER NOT NULL, failed_at_ms BIGINT,"
            " last_error TEXT, PRIMARY KEY (consumer, message_key))"
        )
        self.credits.commit()

    def store(
        self, key: str, body: bytes, *, status: str = "NEW", at_ms: int = 1, topic: str = "orders",
        consumer: str = "credit_service", last_error: str | None = None, properties: str = "{}",
    ) -> None:  # fmt: skip
        """Stores a message in the inbox."""
        self.add_inbox()
        self.credits.execute(
            "INSERT INTO rocketmq_inbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (consumer, key, topic, body, properties, status, at_ms, at_ms, 1, at_ms if last_error else None, last_error),
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


@pytest.fixture
def judge() -> Judge:
    """Returns the engine of these tests: SQLite, without a JVM. `tests/foreign/spark/session` runs the same tests with Spark."""
    return reconcile_embedded
