"""Runs SQL that was written for Spark on rows in memory, in SQLite."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from typing import Any, Final

Row = Mapping[str, Any]
"""A row by column name."""
_MARK_BYTES: Final = 5
"""The number of bytes of an item's hash. It is small enough that the sum of millions of hashes does not overflow."""


def quoted(text: str) -> str:
    """Returns the string as a literal of SQLite's SQL."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def select(query: str, **tables: Sequence[Row]) -> list[dict[str, Any]]:
    """Returns the rows of a query over these tables. The first row of a table names its columns; a table needs a row.

    Raises sqlite3.Error, and OverflowError for an integer of more than 64 bits.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        for name, (arguments, function) in _FUNCTIONS.items():
            connection.create_function(name, arguments, function, deterministic=True)
        for table, rows in tables.items():
            fill(connection, table, tuple(rows[0]), rows)
        return [dict(row) for row in connection.execute(query)]


def fill(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Creates a table of these columns and inserts the rows. Columns that a row lacks are NULL."""
    connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    values = (tuple(map(row.get, columns)) for row in rows)
    connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", values)


def mark_of_item(name: str | None, quantity: int | None) -> int:
    """Returns a hash of an article and its quantity. Lists with equal sums of hashes have the same items, in any sequence."""
    return int.from_bytes(blake2b(f"{quantity} {name}".encode(), digest_size=_MARK_BYTES).digest())


def _length(text: str | None) -> int | None:
    """Returns the length of a text. SQLite's own function ends at the first NUL character."""
    return None if text is None else len(text)


def _greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)


def _quotient(number: int | None, divisor: int) -> int | None:
    """Returns the quotient rounded toward zero."""
    return None if number is None else abs(number) // divisor * (1 if number >= 0 else -1)


def _matches(pattern: str, text: str | None) -> bool | None:
    return None if text is None else re.search(pattern, text) is not None


def _concat(*values: Any) -> str | None:
    return None if None in values else "".join(map(str, values))


_FUNCTIONS: Final[Mapping[str, tuple[int, Callable[..., Any]]]] = {
    "length": (1, _length),
    "greatest": (-1, _greatest),
    "div": (2, _quotient),
    "regexp": (2, _matches),
    "concat": (-1, _concat),
    "xxhash64": (2, mark_of_item),
}
"""Spark's functions that SQLite lacks or implements differently, with their numbers of arguments.

The hash differs from Spark's, but is used only to compare hashes with each other.
"""
