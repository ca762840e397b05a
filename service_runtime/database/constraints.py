"""Determines whether a database refused a row, and which key a duplicate row violates, on SQLite and PostgreSQL.

SQLite reports the kind of the violation (`sqlite_errorname`) and, in its message, the columns. PostgreSQL reports the kind
(SQLSTATE) and the name of the constraint. Constraints must therefore have PostgreSQL's default names (TABLE_pkey,
TABLE_COLUMN_key), or names that contain the column names.
"""

from typing import Any, Final

from sqlalchemy import Column
from sqlalchemy.exc import DataError, DBAPIError

_SQLITE_DUPLICATES: Final = ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID")
_POSTGRESQL_DUPLICATE: Final = "23505"
_NOT_ABOUT_ONE_ROW: Final = frozenset(
    ["08", "25", "26", "28", "2D", "3B", "3D", "3F", "40", "53", "55", "57", "58", "72", "F0", "HV", "XX"]
)
"""SQLSTATE classes for errors of the connection, transaction or server, for example of disks, locks or a standby."""
_OF_ANOTHER_VERSION: Final = ("SQLITE_CONSTRAINT_NOTNULL", "23502", "42P01", "42703")
"""The codes for a required column that this version does not fill, and for a missing table or column."""


def is_refusal(error: BaseException | None) -> bool:
    """Returns True if the database refuses a row because of its values, a constraint, a trigger, or a missing privilege.

    The cause may be the row or the rule; see `rocketmq_broker.databases.inbox`. A column that this version does not fill, or a
    missing table, does not count as a refusal.
    """
    if isinstance(error, DataError):
        return True
    code = _code(error)
    if not code or code in _OF_ANOTHER_VERSION:
        return False
    return code.startswith("SQLITE_CONSTRAINT_") if code.startswith("SQLITE_") else code[:2] not in _NOT_ABOUT_ONE_ROW


def is_duplicate(error: DBAPIError, column: Column[Any]) -> bool:
    """Returns True if the error reports a duplicate key, and the column is part of that key."""
    code, cause, table = _code(error), error.orig, column.table.name
    if code in _SQLITE_DUPLICATES:
        # UNIQUE constraint failed: orders.customer, orders.idempotency_key (or, for an index on expressions: index 'NAME')
        key = str(cause).partition(": ")[2]
        return column.name in key if key.startswith("index ") else f"{table}.{column.name}" in key.split(", ")
    if code != _POSTGRESQL_DUPLICATE:
        return False
    details: Any = getattr(cause, "diag", None)
    key = details.constraint_name
    return details.table_name == table and (column.primary_key if key == f"{table}_pkey" else column.name in key)


def _code(error: BaseException | None) -> str:
    """Returns SQLite's error name or PostgreSQL's SQLSTATE, or an empty string if the error is not from the database."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
