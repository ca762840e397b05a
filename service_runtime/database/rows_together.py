"""Writes rows of several tables atomically, on PostgreSQL in one statement.

The statement (a data-modifying WITH) is a database transaction and takes one round trip. BEGIN, an INSERT for each table and
COMMIT take one each. In a program with many threads a round trip is expensive, because the thread releases the interpreter lock
and must acquire it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, Insert, Select, Table, bindparam, exists, func, insert, select, values
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.elements import BindParameter

Row = Mapping[str, Any]
"""The values of a row by column name."""


@dataclass(frozen=True, slots=True)
class RowsTogether:
    """A first row, and further rows that are written together with it."""

    table: Table
    row: Row
    others: Sequence[tuple[Table, Sequence[Row]]]
    """The rows of each further table, at least one, all with the same columns. They are inserted in this order."""
    unless: str | None = None
    """A unique column of `table`. If a row with the same value exists, nothing is written."""


def write_each(connection: Connection, together: RowsTogether) -> bool:
    """Writes the rows table by table, in the caller's SQLite transaction. Returns True if they were written."""
    first = sqlite.insert(together.table)
    if together.unless is not None:
        first = first.on_conflict_do_nothing(index_elements=[together.unless])
    if not connection.execute(first, dict(together.row)).rowcount:
        return False
    for table, rows in together.others:
        connection.execute(table.insert(), [dict(row) for row in rows])
    return True


def write_by_one_statement(connection: Connection, together: RowsTogether) -> bool:
    """Writes all rows with one PostgreSQL statement. Returns True if the rows were written."""
    first = together.table, tuple(together.row)
    others = tuple((table, tuple(rows[0]), len(rows)) for table, rows in together.others)
    statement = _compiled(connection.dialect, first, others, together.unless)
    parameters = dict(zip(_names(0, 0, together.row), together.row.values(), strict=True))
    for number, (_, rows) in enumerate(together.others, 1):
        for line, row in enumerate(rows):
            parameters.update(zip(_names(number, line, row), row.values(), strict=True))
    return bool(connection.exec_driver_sql(statement, parameters).scalar_one())


def is_surely_undone(error: SQLAlchemyError) -> bool:
    """Returns True if a statement with autocommit has certainly written nothing.

    That is the case after an error of severity ERROR. A lost connection, or an error of severity FATAL, may have come after the
    commit.
    """
    report = getattr(getattr(error, "orig", None), "diag", None)
    return getattr(report, "severity_nonlocalized", None) == "ERROR"


_Shape = tuple[Table, tuple[str, ...], int]
"""A table, the columns of its rows, and their number."""


@lru_cache(maxsize=512)
def _compiled(dialect: Dialect, first: tuple[Table, tuple[str, ...]], others: tuple[_Shape, ...], unless: str | None) -> str:
    """Returns the SQL, which is compiled once for each number of rows."""
    table, columns = first
    inserted = postgresql.insert(table).values(dict(zip(columns, _parameters(table, columns, 0, 0), strict=True)))
    if unless is not None:
        inserted = inserted.on_conflict_do_nothing(index_elements=[unless])
    written = inserted.returning(table.c[columns[0]]).cte("first")
    statement: Select[Any] = select(func.count()).select_from(written)
    for number, shape in enumerate(others, 1):
        statement = statement.add_cte(_insert_if(exists(select(written)), shape, number).cte(f"other_{number}"))
    return str(statement.compile(dialect=dialect))


def _insert_if(condition: Any, shape: _Shape, number: int) -> Insert:
    table, columns, count = shape
    rows = values(*(table.c[name] for name in columns), name=f"rows_{number}")
    rows = rows.data([_parameters(table, columns, number, line) for line in range(count)])
    return insert(table).from_select(columns, select(*(rows.c[name] for name in columns)).where(condition))


def _parameters(table: Table, columns: Sequence[str], number: int, line: int) -> tuple[BindParameter[Any], ...]:
    names = _names(number, line, columns)
    return tuple(bindparam(name, type_=table.c[column].type) for name, column in zip(names, columns, strict=True))


def _names(number: int, line: int, columns: Sequence[str] | Row) -> list[str]:
    return [f"{column}_{number}_{line}" for column in columns]
