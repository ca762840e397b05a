"""Determines which constraint a statement violated, on SQLite and PostgreSQL.

SQLite reports the kind (`sqlite_errorname`) and, in its message, the columns. PostgreSQL reports the kind (SQLSTATE) and the name
of the constraint. So constraints have PostgreSQL's default names (TABLE_pkey, TABLE_COLUMN_key), or names that contain their
columns' names.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from sqlalchemy import Column
from sqlalchemy.exc import DataError, DBAPIError


class ConstraintKind(Enum):
    """The kind of a violated constraint."""

    UNIQUE = auto()
    """A row with this key exists already. Includes primary keys."""
    CHECK = auto()
    """A check constraint does not allow the value."""
    NOT_NULL = auto()
    FOREIGN_KEY = auto()
    TRIGGER = auto()
    """A trigger that refused the row."""


_KIND_OF_SQLITE: Final = {
    "SQLITE_CONSTRAINT_UNIQUE": ConstraintKind.UNIQUE,
    "SQLITE_CONSTRAINT_PRIMARYKEY": ConstraintKind.UNIQUE,
    "SQLITE_CONSTRAINT_ROWID": ConstraintKind.UNIQUE,
    "SQLITE_CONSTRAINT_CHECK": ConstraintKind.CHECK,
    "SQLITE_CONSTRAINT_DATATYPE": ConstraintKind.CHECK,
    "SQLITE_CONSTRAINT_NOTNULL": ConstraintKind.NOT_NULL,
    "SQLITE_CONSTRAINT_FOREIGNKEY": ConstraintKind.FOREIGN_KEY,
    "SQLITE_CONSTRAINT_TRIGGER": ConstraintKind.TRIGGER,
}
_KIND_OF_SQLSTATE: Final = {
    "23505": ConstraintKind.UNIQUE,
    "23514": ConstraintKind.CHECK,
    "23P01": ConstraintKind.CHECK,
    "23502": ConstraintKind.NOT_NULL,
    "23503": ConstraintKind.FOREIGN_KEY,
    "P0001": ConstraintKind.TRIGGER,
}
_NOT_ABOUT_ONE_ROW: Final = frozenset(
    ["08", "25", "26", "28", "2D", "3B", "3D", "3F", "40", "53", "55", "57", "58", "72", "F0", "HV", "XX"]
)
"""Classes of SQLSTATEs about the connection, the transaction or the server, such as disks, locks or a standby."""
_NOT_ABOUT_ONE_ROW_EITHER: Final = frozenset(["42P01", "42703"])
"""SQLSTATEs for a missing table or column, which an incomplete migration causes."""
_COLUMN_IN_SQLITE_MESSAGE: Final = re.compile(r"(\w+)\.(\w+)")
_INDEX_IN_SQLITE_MESSAGE: Final = re.compile(r"index '([^']+)'")


@dataclass(frozen=True, slots=True)
class ConstraintViolation:
    """A violated constraint, as far as the database reports it."""

    kind: ConstraintKind
    table: str | None
    columns: tuple[str, ...]
    """The columns of the constraint. Only SQLite reports them; on PostgreSQL the tuple is empty."""
    constraint: str | None
    """The name of the constraint. On SQLite it is None, unless the constraint is an index on expressions."""

    def is_duplicate_of(self, column: Column[Any]) -> bool:
        """Returns True if the violated constraint is a unique key that contains this column."""
        if self.kind is not ConstraintKind.UNIQUE or self.table not in (None, column.table.name):
            return False
        if self.columns:
            return column.name in self.columns
        name = self.constraint or ""
        return column.primary_key if name == f"{column.table.name}_pkey" else column.name in name


def violation_of(error: DBAPIError) -> ConstraintViolation | None:
    """Returns the violated constraint, or None if the error has another cause."""
    cause = error.orig
    sqlite_kind = _KIND_OF_SQLITE.get(getattr(cause, "sqlite_errorname", None) or "")
    if sqlite_kind is not None:
        return _sqlite_violation(sqlite_kind, str(cause))
    kind = _KIND_OF_SQLSTATE.get(getattr(cause, "sqlstate", None) or "")
    if kind is None:
        return None
    details = getattr(cause, "diag", None)
    return ConstraintViolation(kind, getattr(details, "table_name", None), (), getattr(details, "constraint_name", None))


def is_refusal(error: BaseException | None) -> bool:
    """Returns True if the database refuses a row because of its values, a constraint, a trigger, or a missing privilege.

    The cause may be the row or the rule; see `rocketmq_broker.databases.inbox`. A column that this version does not fill, or a
    missing table, does not count as a refusal.
    """
    if isinstance(error, DataError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    violation = violation_of(error)
    if violation is not None:
        return violation.kind is not ConstraintKind.NOT_NULL
    code = getattr(error.orig, "sqlstate", None) or ""
    is_of_a_row = code[:2] not in _NOT_ABOUT_ONE_ROW and code not in _NOT_ABOUT_ONE_ROW_EITHER and code[:2] != "23"
    return bool(code) and is_of_a_row


def is_duplicate(error: DBAPIError, column: Column[Any]) -> bool:
    """Returns True if the error means that a row with the same key exists, and the column belongs to that key."""
    violation = violation_of(error)
    return violation is not None and violation.is_duplicate_of(column)


def _sqlite_violation(kind: ConstraintKind, message: str) -> ConstraintViolation:
    """Parses `UNIQUE constraint failed: orders.customer, orders.idempotency_key`, or `… failed: index 'NAME'`."""
    _, _, what = message.partition(": ")
    named = _COLUMN_IN_SQLITE_MESSAGE.findall(what) if kind in (ConstraintKind.UNIQUE, ConstraintKind.NOT_NULL) else []
    index = _INDEX_IN_SQLITE_MESSAGE.search(what)
    table = named[0][0] if named else None
    return ConstraintViolation(kind, table, tuple(column for _, column in named), index[1] if index else None)
