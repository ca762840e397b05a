"""Reads values as the types of their columns, even if the database contains values of other types.

SQLite stores any value in any column: 0.6 or '12abc' in an integer column, bytes in a text column. PostgreSQL's columns can be
altered: `numeric` allows decimals, NaN and numbers beyond bigint. Such a value must not prevent other values from being read. It
is read as NULL in a number column and as a unique text in a text column, and is reported with table and row.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow

from pipelines.sources.databases.database_address import Driver

NUMBER: Final = "bigint"
BINARY: Final = "binary"
UNREADABLE: Final = "(unreadable)"
_MAX_SHOWN_LENGTH: Final = 40
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def is_plain(wanted: str, found: pyarrow.DataType) -> bool:
    """Returns True if a PostgreSQL column can only contain values of the wanted type, or NULL."""
    if wanted == BINARY:
        return bool(pyarrow.types.is_binary(found) or pyarrow.types.is_large_binary(found))
    is_text = pyarrow.types.is_string(found) or pyarrow.types.is_large_string(found)
    return bool(pyarrow.types.is_integer(found) if wanted == NUMBER else is_text)


def readable(driver: Driver, name: str, wanted: str, row: str | None = None, *, is_nullable: bool, is_known: bool = False) -> str:
    """Returns the SQL that reads a column's value. `row` is the SQL of the row's name.

    `is_known` is True if the column's declared type excludes other values. In nullable text columns NULL is read as "", because
    SQLite's driver infers integers for a column that begins with many NULLs.
    """
    if wanted == NUMBER:
        # All integers are read as bigint, because PostgreSQL cannot shift a 4-byte integer by 32 bits.
        return f"CAST({name} AS bigint)" if is_known else f"CASE WHEN {_is_number(driver, name)} THEN {_number(driver, name)} END"
    if wanted == BINARY:
        # Text is read as its bytes, and NULL as no bytes, so that each batch of SQLite's driver has the same type.
        return f"COALESCE(CAST({name} AS blob), x'')" if driver is Driver.SQLITE else _bytes(name, is_known)
    otherwise = f"'{UNREADABLE}'" if row is None else f"'{UNREADABLE} in row ' || {row}"
    text = name if is_known or driver is Driver.SQLITE else f"CAST({name} AS text)"
    nothing = f"WHEN {name} IS NULL THEN '' " if is_nullable else ""
    is_text = f"typeof({name}) = 'text'" if driver is Driver.SQLITE else f"{name} IS NOT NULL"
    return f"CASE {nothing}WHEN {is_text} THEN {text} ELSE {otherwise} END"


def unreadable(driver: Driver, name: str, wanted: str, *, is_nullable: bool, is_known: bool = False) -> str:
    """Returns the SQL condition that the value cannot be read."""
    if wanted == NUMBER:
        is_read = f"{name} IS NOT NULL" if is_known else _is_number(driver, name)
    else:
        is_read = (
            f"typeof({name}) = '{'blob' if wanted == BINARY else 'text'}'" if driver is Driver.SQLITE else f"{name} IS NOT NULL"
        )
    wrong = f"NOT COALESCE({is_read}, FALSE)"
    return f"({wrong} AND {name} IS NOT NULL)" if is_nullable else f"({wrong})"


def shown(driver: Driver, name: str) -> str:
    """Returns the SQL of the value as shortened text for people."""
    if driver is Driver.SQLITE:
        return f"typeof({name}) || ' ' || substr(quote({name}), 1, {_MAX_SHOWN_LENGTH})"
    return f"COALESCE(left(CAST({name} AS text), {_MAX_SHOWN_LENGTH}), 'NULL')"


def texts(columns: Mapping[str, str]) -> Sequence[str]:
    """Returns the names of the columns that contain text."""
    return [name for name, kind in columns.items() if kind not in (NUMBER, BINARY)]


def with_valid_text(column: pyarrow.Array) -> pyarrow.Array:
    """Returns the column with invalid UTF-8 replaced. SQLite does not validate text."""
    if not (pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)):
        return column
    try:
        column.validate(full=True)
    except pyarrow.ArrowInvalid:
        values = column.cast(pyarrow.binary()).to_pylist()
        return pyarrow.array([None if value is None else value.decode(errors="replace") for value in values], pyarrow.string())
    return column


def _is_number(driver: Driver, name: str) -> str:
    if driver is Driver.SQLITE:
        return f"typeof({name}) = 'integer'"
    text = f"CAST({name} AS text)"
    in_range = f"CAST({text} AS numeric) BETWEEN {_LEAST} AND {_GREATEST}"
    return f"CASE WHEN {text} ~ '^-?[0-9]{{1,40}}([.]0*)?$' THEN {in_range} ELSE FALSE END"


def _bytes(name: str, is_known: bool) -> str:
    """Returns PostgreSQL's SQL for the bytes of a value."""
    value = name if is_known else f"convert_to(CAST({name} AS text), 'UTF8')"
    return f"COALESCE({value}, CAST('' AS bytea))"


def _number(driver: Driver, name: str) -> str:
    return name if driver is Driver.SQLITE else f"CAST(CAST(CAST({name} AS text) AS numeric) AS bigint)"
