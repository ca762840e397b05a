"""Inserts rows whose key does not exist yet. Used by the barrier, by idempotent consumption and by ledgers."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Executable, Table, and_, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

Row = Mapping[str, Any]
"""The values of a row, keyed by column name."""
RowKey = tuple[Any, ...]
"""The values of a row's key, in the order of the key's columns."""
_DialectInsert = Callable[[Table], postgresql.Insert | sqlite.Insert]

_KINDS: Final[Mapping[str, _DialectInsert]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
"""Maps each dialect that supports ON CONFLICT to its INSERT construct."""


def insert_missing(connection: Connection, table: Table, rows: Sequence[Row], key: Sequence[str]) -> set[RowKey]:
    """Inserts the rows whose key is not in the table. Returns the keys of the inserted rows.

    `key` names the columns of one unique constraint. If another transaction has inserted the same key and not committed, the call
    waits for that transaction. A violation of another constraint raises the database's error. An existing key does not abort the
    caller's transaction: SQLite and PostgreSQL use ON CONFLICT, other databases a savepoint for each row. The rows are durable
    when the caller commits.
    """
    if not rows:
        return set()
    if connection.dialect.name not in _KINDS:
        return _insert_by_savepoints(connection, table, rows, key)
    # Passing the rows as parameters lets SQLAlchemy compile the statement once instead of for each batch.
    return set(map(tuple, connection.execute(_statement(connection.dialect.name, table, tuple(key)), list(rows))))


@lru_cache(maxsize=32)
def _statement(kind: str, table: Table, key: tuple[str, ...]) -> Executable:
    """Returns the table's INSERT statement. Cached, because building it and its key for SQLAlchemy's cache is expensive."""
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
