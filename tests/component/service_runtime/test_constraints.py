"""Tests that violated constraints are distinguished on SQLite and PostgreSQL."""

from collections.abc import Iterator

import pytest
from sqlalchemy import (
    CheckConstraint,
    Column,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.exc import DBAPIError

from service_runtime.database.constraints import is_duplicate, is_refusal
from service_runtime.database.opening import create_database_engine

TABLES = MetaData()
PARCELS = Table(
    "parcels",
    TABLES,
    Column("parcel_id", Integer, primary_key=True, autoincrement=False),
    Column("sender", String(20), nullable=False),
    Column("label", String(20)),
    Column("code", String(20), unique=True),
    Column("inside", ForeignKey("parcels.parcel_id")),
    UniqueConstraint("sender", "label", name="uq_parcels_sender_label"),
    CheckConstraint("sender <> 'nobody'"),
    Index("ix_parcels_lower_code", text("lower(code)"), unique=True),
)
FIRST = {"parcel_id": 1, "sender": "ada", "label": "a", "code": "one", "inside": None}
SECOND = {"parcel_id": 2, "sender": "bob", "label": "b", "code": "two", "inside": None}


@pytest.fixture
def database(database_url: str) -> Iterator[Engine]:
    engine = create_database_engine(database_url)
    TABLES.create_all(engine)
    yield engine
    engine.dispose()


def error_of(engine: Engine, row: dict[str, object]) -> DBAPIError:
    with engine.begin() as connection:
        connection.execute(PARCELS.insert(), [FIRST])
    with pytest.raises(DBAPIError) as raised, engine.begin() as connection:
        connection.execute(PARCELS.insert(), [row])
    return raised.value


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ({"parcel_id": 1}, {"parcel_id"}),
        ({"code": "one"}, {"code"}),
        ({"code": "ONE"}, {"code"}),
        ({"sender": "ada", "label": "a"}, {"sender", "label"}),
    ],
)
def test_a_duplicate_is_one_of_the_columns_of_its_key_and_of_no_other(
    database: Engine, change: dict[str, object], columns: set[str]
) -> None:
    error = error_of(database, SECOND | change)
    assert {column.name for column in PARCELS.columns if is_duplicate(error, column)} == columns


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [({"sender": "nobody"}, True), ({"sender": None}, False), ({"inside": 7}, True), ({"code": "one"}, True)],
    ids=["check", "not null", "foreign key", "unique"],
)
def test_a_constraint_refuses_a_row_unless_this_version_does_not_fill_its_column(
    database: Engine, change: dict[str, object], is_refused: bool
) -> None:
    error = error_of(database, SECOND | change)
    assert is_refusal(error) == is_refused
    assert any(is_duplicate(error, column) for column in PARCELS.columns) == ("code" in change)


def test_a_trigger_refuses_a_row(database: Engine) -> None:
    with database.begin() as connection:
        for statement in trigger_of(database):
            connection.execute(text(statement))
    error = error_of(database, SECOND)
    assert is_refusal(error)
    assert not any(is_duplicate(error, column) for column in PARCELS.columns)


def trigger_of(engine: Engine) -> list[str]:
    if engine.dialect.name == "sqlite":
        return ["CREATE TRIGGER no BEFORE INSERT ON parcels WHEN NEW.sender = 'bob' BEGIN SELECT RAISE(ABORT, 'no'); END"]
    return [
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF NEW.sender = 'bob' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER no BEFORE INSERT ON parcels FOR EACH ROW EXECUTE FUNCTION no()",
    ]


def test_a_missing_table_refuses_no_row(database: Engine) -> None:
    with pytest.raises(DBAPIError) as raised, database.begin() as connection:
        connection.execute(text("SELECT * FROM nowhere"))
    assert not is_refusal(raised.value)


@pytest.mark.parametrize(("change", "column"), [({"parcel_id": 1}, "parcel_id"), ({"sender": "ada", "label": "a"}, "label")])
def test_a_column_of_another_table_is_not_meant(database: Engine, change: dict[str, object], column: str) -> None:
    other = Table("letters", MetaData(), Column("parcel_id", Integer, primary_key=True), Column("label", String(20), unique=True))
    error = error_of(database, SECOND | change)
    assert is_duplicate(error, PARCELS.c[column])
    assert not is_duplicate(error, other.c[column])
