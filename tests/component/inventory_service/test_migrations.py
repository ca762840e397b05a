"""Tests that inventory databases of earlier versions can be upgraded and downgraded."""

from collections.abc import Iterator

import pytest
from alembic import command
from sqlalchemy import Engine, inspect

from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import MIGRATIONS
from rocketmq_broker.world import World
from service_runtime.database.engine import create_database_engine
from service_runtime.database.migration import Migrated
from service_runtime.database.opening import migrate_database
from tests.component.inventory_service.conftest import created, shipped
from tests.unit.migrating import run_migrations


@pytest.fixture
def old_engine(database_url: str) -> Iterator[Engine]:
    """Yields the engine of a database of version 0002."""
    engine = create_database_engine(database_url)
    run_migrations(engine, MIGRATIONS, command.upgrade, "0002")
    yield engine
    engine.dispose()


def test_a_database_of_an_earlier_version_gets_an_inbox_and_can_go_back(old_engine: Engine, database_url: str) -> None:
    assert migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10) == Migrated("0002", "0003")
    room = SqlStockRoom(old_engine, World())
    assert shipped(room, created("1")).handled == 1
    run_migrations(old_engine, MIGRATIONS, command.downgrade, "0002")
    assert not inspect(old_engine).has_table("rocketmq_inbox")
    assert room.find_shipment("1") is not None


@pytest.mark.parametrize("is_shortage", [False, True])
def test_the_way_back_changes_nothing_while_messages_or_reports_wait(
    old_engine: Engine, database_url: str, is_shortage: bool
) -> None:
    migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    room = SqlStockRoom(old_engine, World())
    room.set_stock("tea", 0)
    room.store([created("1")])
    if is_shortage:
        shipped(room)
    with pytest.raises(ValueError, match="cannot downgrade to 0002: the inbox has 1 messages"):
        run_migrations(old_engine, MIGRATIONS, command.downgrade, "0002")
    assert (room.inbox.state().new, room.shortages.state().new) == (not is_shortage, is_shortage)
    assert migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10) == Migrated("0003", "0003")
