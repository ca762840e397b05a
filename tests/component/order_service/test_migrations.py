"""Tests that order databases of earlier versions, with rows, can be upgraded and downgraded."""

from collections.abc import Iterator, Sequence

import pytest
from alembic import command
from sqlalchemy import Engine, Row, text
from sqlalchemy.exc import IntegrityError

from order_messages.states import OrderState, TransactionState
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.service_layer.attempt import Outcome, TransactionFailed
from rocketmq_broker.world import World
from service_runtime.database.migration import Migrated
from service_runtime.database.opening import migrate_database
from tests.component.order_service.conftest import a_later_order, an_order
from tests.unit.migrating import first_version, run_migrations

TABLES = {
    "orders": "id, order_id, customer, total_cents, currency, idempotency_key, created_at_ms",
    "order_items": "id, order_id, name, quantity, price_cents",
    "transactions": "transaction_id, order_id, state, created_at_ms",
}
OLD_ROWS = [
    *(
        f"INSERT INTO orders VALUES ({number}, 'order-{number}', 'customer-{number % 3}', {number}00, 'EUR', {key}, {number})"
        for number, key in [(1, "'key-1'"), (2, "'key-2'"), (4, "NULL"), (5, "NULL"), (9, "'key-9'")]
    ),
    "INSERT INTO order_items VALUES (7, 'order-1', 'tea', 1, 100)",
    "INSERT INTO order_items VALUES (8, 'order-9', 'cup', 3, 300)",
    "INSERT INTO transactions VALUES ('transaction-1', 'order-1', 'COMMITTED', 1)",
    "INSERT INTO transactions VALUES ('transaction-3', NULL, 'ROLLED_BACK', 3)",
]


@pytest.fixture
def old_engine(database_url: str) -> Iterator[Engine]:
    """Yields the engine of a database of version 0001."""
    with first_version(database_url, MIGRATIONS, OLD_ROWS, counter="orders_id_seq") as engine:
        yield engine


def test_no_row_of_an_old_database_is_lost_or_changed_and_each_order_is_placed(old_engine: Engine, database_url: str) -> None:
    before = rows(old_engine)
    done = migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    assert (done, rows(old_engine)) == (Migrated("0001", "0004"), before)
    store = SqlOrderStore(old_engine, World())
    found = store.find_order("order-9")
    assert found is not None
    assert (found.idempotency_key, [item.name for item in found.items]) == ("key-9", ["cup"])
    assert (found.state, found.pay_until_ms) == (OrderState.PLACED, None)
    assert store.find_transaction("transaction-3") is TransactionState.ROLLED_BACK
    assert [one.transaction_id for one in store.find_transactions("order-1")] == ["transaction-1"]


def test_a_migrated_database_keeps_keys_unique_for_each_customer_and_ids_rising(old_engine: Engine, database_url: str) -> None:
    migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    store = SqlOrderStore(old_engine, World())
    store.store_order(an_order("order-10", customer="ada", key="key-1"), "transaction-10")
    with pytest.raises(TransactionFailed, match=Outcome.KEY_TAKEN.meaning):
        store.store_order(an_order("order-11", customer="customer-1", key="key-1"), "transaction-11")
    with old_engine.begin() as connection:
        assert connection.scalar(text("SELECT id FROM orders WHERE order_id = 'order-10'")) > 9
        with pytest.raises(IntegrityError, match=r"(?i)foreign key"):
            connection.execute(text("INSERT INTO order_items (order_id, name, quantity, price_cents) VALUES ('none', 'x', 1, 1)"))


def test_the_way_back_keeps_all_rows_where_no_two_customers_share_a_key(old_engine: Engine, database_url: str) -> None:
    before = rows(old_engine)
    migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    run_migrations(old_engine, MIGRATIONS, command.downgrade, "0001")
    assert rows(old_engine) == before
    with old_engine.begin() as connection, pytest.raises(IntegrityError):
        connection.execute(text("INSERT INTO orders VALUES (10, 'order-10', 'ada', 1, 'EUR', 'key-1', 1)"))


def test_the_way_back_changes_nothing_where_two_customers_share_a_key(old_engine: Engine, database_url: str) -> None:
    migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    SqlOrderStore(old_engine, World()).store_order(an_order("order-10", customer="ada", key="key-1"), "transaction-10")
    before = rows(old_engine)
    with pytest.raises(IntegrityError):
        run_migrations(old_engine, MIGRATIONS, command.downgrade, "0001")
    assert rows(old_engine) == before
    assert migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10) == Migrated("0004", "0004")


def test_the_way_back_changes_nothing_where_an_order_is_to_be_paid_later(old_engine: Engine, database_url: str) -> None:
    migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    store = SqlOrderStore(old_engine, World())
    store.store_order(a_later_order("order-10"), "transaction-10")
    with pytest.raises(ValueError, match="1 orders are paid later"):
        run_migrations(old_engine, MIGRATIONS, command.downgrade, "0002")
    assert store.find_order("order-10") == a_later_order("order-10")


def rows(engine: Engine) -> dict[str, Sequence[Row[tuple[object, ...]]]]:
    """Returns the rows, with the columns that exist in all versions."""
    with engine.connect() as connection:
        return {
            table: connection.execute(text(f"SELECT {columns} FROM {table} ORDER BY 1")).all()
            for table, columns in TABLES.items()
        }
