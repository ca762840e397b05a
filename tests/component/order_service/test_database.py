from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text

from order_service.adapters.tables import MIGRATIONS, OrderDatabase
from rocketmq_broker.world import World
from service_runtime.database.engine import DatabaseUnusable
from service_runtime.database.opening import open_database
from tests.component.order_service.conftest import an_order

NEWEST = "0004"


def test_the_migrations_make_the_tables_that_the_code_uses(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "order_service_version"})
        assert compare_metadata(context, OrderDatabase.metadata) == []


def test_sqlite_is_set_up_to_keep_what_it_committed(sqlite_url: str) -> None:
    engine = open_database(sqlite_url, migrations=MIGRATIONS, start_timeout_s=5)
    with engine.connect() as connection:
        found = [
            connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
        assert found == ["wal", 2, 1]
        assert connection.execute(text("PRAGMA busy_timeout")).scalar_one() >= 5000
    engine.dispose()


def test_the_folder_of_a_new_database_is_made(tmp_path: Path) -> None:
    open_database(f"sqlite:///{tmp_path}/a/b/orders.db", migrations=MIGRATIONS, start_timeout_s=5).dispose()
    assert (tmp_path / "a" / "b" / "orders.db").exists()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "invalid database URL"),
        ("mysql://root:secret@host/orders", "mysql"),
        ("sqlite://", "in-memory"),
        ("postgresql+psycopg://u:secret@127.0.0.1:1/orders", "127.0.0.1:1/orders after 0.2 s"),
    ],
)
def test_a_database_that_cannot_be_used_is_said_in_one_line_without_the_password(url: str, words: str) -> None:
    with pytest.raises(DatabaseUnusable, match=words) as raised:
        open_database(url, migrations=MIGRATIONS, start_timeout_s=0.2)
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_item_cannot_lack_its_order(engine: Engine) -> None:
    row = "INSERT INTO order_items (order_id, name, quantity, price_cents) VALUES ('none', 'tea', 1, 1)"
    with pytest.raises(Exception, match=r"(?i)foreign key"), engine.begin() as connection:
        connection.execute(text(row))


def test_an_order_is_in_the_database_of_whoever_opens_it_next(database_url: str) -> None:
    from order_service.adapters.order_store import SqlOrderStore

    first = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=5)
    SqlOrderStore(first, World()).store_order(an_order(), "transaction-1")
    first.dispose()
    second = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=5)
    assert SqlOrderStore(second, World()).find_order("order-1") == an_order()
    second.dispose()
