from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text

from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS, OrderDatabase
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database
from tests.component.order_service.conftest import an_order


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


def test_an_order_is_in_the_database_of_whoever_opens_it_next(database_url: str) -> None:
    first = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=5)
    SqlOrderStore(first, World()).store_order(an_order(), "transaction-1")
    first.dispose()
    second = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=5)
    assert SqlOrderStore(second, World()).find_order("order-1") == an_order()
    second.dispose()
