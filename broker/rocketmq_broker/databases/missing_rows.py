"""Rows that are inserted unless their key is there: the step that barrier, memory of a consumer, and ledgers have in common."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Executable, Table, and_, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

Row = Mapping[str, Any]
"""A row's values, by the names of its columns."""
RowKey = tuple[Any, ...]
"""The values of a row's key, in the order of its columns."""
_InsertOfItsKind = Callable[[Table], postgresql.Insert | sqlite.Insert]

_KINDS: Final[Mapping[str, _InsertOfItsKind]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
"""INSERT of those kinds of databases that know ON CONFLICT."""


def insert_missing(connection: Connection, table: Table, rows: Sequence[Row], key: Sequence[str]) -> set[RowKey]:
    """Inserts the rows whose key is not in the table. Returns the keys of those really inserted.

    `key` names the columns of one unique constraint. A row with another transaction's uncommitted key waits for that transaction.
    A violation of any other constraint raises the database's error. The transaction goes on in both cases on SQLite and
    PostgreSQL, by ON CONFLICT; on other databases each row has a savepoint. Nothing is durable before the caller's commit.
    """
    if not rows:
        return set()
    if connection.dialect.name not in _KINDS:
        return _insert_by_savepoints(connection, table, rows, key)
    # With the rows as parameters SQLAlchemy compiles the statement once; with the rows in it, for each batch.
    return set(map(tuple, connection.execute(_statement(connection.dialect.name, table, tuple(key)), list(rows))))


@lru_cache(maxsize=32)
def _statement(kind: str, table: Table, key: tuple[str, ...]) -> Executable:
    """Returns the statement, made once for each table: to make it, and its key in SQLAlchemy's cache, costs a run."""
    statement = _KINDS[kind](table).on_conflict_do_nothing(index_elements=key)
    return statement.returning(*(table.c[name] for name in key))


def _insert_by_savepoints(connection: Connection, table: Table, rows: Sequence[Row], key: Sequence[str]) -> set[RowKey]:
    inserted = set()
    for row in rows:
        try:
            with connection.begin_nested():
                connection.execute(insert(table), dict(row))
            inserted.add(tuple(row[name] for name in key))
        except IntegrityError:
            has_key = and_(*(table.c[name] == row[name] for name in key))
            if connection.execute(select(table.c[key[0]]).where(has_key)).first() is None:
                raise
    return inserted
