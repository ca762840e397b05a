"""Tests that credit databases of earlier versions, with rows, can be upgraded and downgraded."""

from collections.abc import Iterator, Sequence

import pytest
from alembic import command
from sqlalchemy import Engine, Row, inspect, text
from sqlalchemy.exc import IntegrityError

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS
from credit_service.domain.credit import CreditOutcome
from rocketmq_broker.databases.sqlalchemy import INBOX
from rocketmq_broker.world import World
from service_runtime.database.migration import Migrated
from service_runtime.database.opening import migrate_database
from tests.component.credit_service.conftest import a_credit, a_reversal, credit, entries, orders, points
from tests.component.credit_service.test_crediting import drain
from tests.unit.migrating import first_version, run_migrations

TABLES = ("credits", "balances")
OLD_ROWS = [
    *(
        f"INSERT INTO credits VALUES ({number}, 'order-{number}', 'ada', 25, 2599, 'message', {transaction}, {number})"
        for number, transaction in [(1, "'transaction'"), (2, "NULL"), (9, "'transaction'")]
    ),
    "INSERT INTO balances VALUES ('ada', 75)",
]


@pytest.fixture
def old_engine(database_url: str) -> Iterator[Engine]:
    """Yields the engine of a database of version 0001."""
    with first_version(database_url, MIGRATIONS, OLD_ROWS, counter="credits_id_seq") as engine:
        yield engine


def test_each_entry_of_an_old_ledger_is_a_credit_and_no_row_is_lost(old_engine: Engine, database_url: str) -> None:
    before = rows(old_engine)
    done = migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    assert (done, rows(old_engine)) == (Migrated("0001", "0004"), before)
    ledger = Ledger(old_engine, World())
    assert credit(ledger, [a_credit("order-1"), a_reversal("order-1"), a_credit("order-10")]) == [
        CreditOutcome.ALREADY_CREDITED, CreditOutcome.CREDITED, CreditOutcome.CREDITED,
    ]  # fmt: skip
    assert points(ledger) == 75
    latest = [(entry.order_id, entry.kind) for entry in entries(ledger)[:2]]
    assert latest == [("order-10", "credit"), ("order-1", "reversal")]


def test_a_program_of_the_first_version_cannot_write_a_credit_twice_into_a_new_ledger(
    old_engine: Engine, database_url: str
) -> None:
    migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    columns = "order_id, customer, points, amount_cents, message_id, created_at_ms"
    with old_engine.begin() as connection, pytest.raises(IntegrityError):
        connection.execute(text(f"INSERT INTO credits ({columns}) VALUES ('order-1', 'ada', 25, 2599, 'message', 1)"))


def test_the_way_back_keeps_all_credits(old_engine: Engine, database_url: str) -> None:
    before = rows(old_engine)
    migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    run_migrations(old_engine, MIGRATIONS, command.downgrade, "0001")
    assert rows(old_engine) == before
    with old_engine.begin() as connection, pytest.raises(IntegrityError):
        connection.execute(text("INSERT INTO credits VALUES (10, 'order-1', 'ada', 25, 2599, 'message', NULL, 1)"))


def test_the_way_back_changes_nothing_where_the_ledger_has_a_reversal(old_engine: Engine, database_url: str) -> None:
    migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    credit(Ledger(old_engine, World()), [a_reversal("order-1")])
    before = rows(old_engine)
    with pytest.raises(ValueError, match="the ledger's 1 reversals"):
        run_migrations(old_engine, MIGRATIONS, command.downgrade, "0001")
    assert rows(old_engine) == before
    assert migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10) == Migrated("0004", "0004")


def rows(engine: Engine) -> dict[str, Sequence[Row[tuple[object, ...]]]]:
    """Returns the rows, with the columns that exist in both versions."""
    columns = {
        "credits": "id, order_id, customer, points, amount_cents, message_id, transaction_id, created_at_ms",
        "balances": "*",
    }
    with engine.connect() as connection:
        return {table: connection.execute(text(f"SELECT {columns[table]} FROM {table} ORDER BY 1")).all() for table in TABLES}


@pytest.mark.parametrize(("rows_before", "expected"), [(OLD_ROWS[:-1], 7_200_000 - 3_600_000), ([], None)])
def test_an_old_ledger_says_until_when_it_knows_all_messages_and_a_new_one_knows_none(
    database_url: str, rows_before: list[str], expected: int | None
) -> None:
    rows_before = [row.replace(", 9)", ", 7200000)") for row in rows_before]
    with first_version(database_url, MIGRATIONS, rows_before, counter="credits_id_seq") as engine:
        migrate_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
        assert Ledger(engine, World()).positions.known_until_ms() == expected


def test_the_inbox_is_made_and_dropped_and_its_messages_are_never_dropped(engine: Engine) -> None:
    ledger = Ledger(engine, World())
    ledger.store(orders(3))
    with pytest.raises(ValueError, match="the inbox has 3 messages; run the workers until it is empty"):
        run_migrations(engine, MIGRATIONS, command.downgrade, "0003")
    drain(ledger)
    run_migrations(engine, MIGRATIONS, command.downgrade, "0003")
    assert INBOX.name not in inspect(engine).get_table_names()
    run_migrations(engine, MIGRATIONS, command.upgrade, "0004")
    ledger.store(orders(3, first=3))
    drain(ledger)
    assert ledger.last_written() == 6


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_postgresql_vacuums_the_inbox_by_the_number_of_dead_rows(engine: Engine) -> None:
    with engine.connect() as connection:
        options = connection.scalar(text(f"SELECT reloptions FROM pg_class WHERE relname = '{INBOX.name}'"))
    assert options == ["autovacuum_vacuum_scale_factor=0", "autovacuum_vacuum_threshold=1000"]
