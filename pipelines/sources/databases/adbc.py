"""Reads tables as Arrow batches with ADBC. Only this module accesses databases."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import pyarrow
from adbc_driver_manager.dbapi import Connection, Error

from pipelines.errors import UnreadableDatabase
from pipelines.sources.databases.column_values import NUMBER, is_plain, readable, shown, texts, unreadable
from pipelines.sources.databases.database_address import DatabaseAddress, Driver
from pipelines.sources.databases.key_ranges import KeyRange, Since

BATCH_ROWS = 65_536
"""The number of rows of a batch. SQLite's driver infers column types from the first batch, so it should be long."""

MAX_UNREADABLE = 1_000
"""The maximum number of unreadable rows listed for a table. A larger number probably has a single cause."""

ROWID = "rowid"
"""The name of SQLite's row id column, which all tables have unless they were created WITHOUT ROWID."""

SQLITE_BUSY_TIMEOUT_MS = 10_000

_HEADER_BYTES, _WAL_BYTE, _WAL = 20, 18, b"\x02\x02"
_READ_AS_OWNER = "run this as the user of the services, or copy the file and its -wal to another folder"

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_table(address: DatabaseAddress, table: str, columns: Sequence[str]) -> None:
    """Raises UnreadableDatabase if the table cannot be read or lacks one of these columns."""
    with _cursor(address) as cursor:
        cursor.execute(f"{_select(table, columns)} WHERE 1 = 0")
        cursor.fetchall()


def has_table(address: DatabaseAddress, table: str) -> bool:
    """Returns True if the database has this table, or a view with its name. Raises UnreadableDatabase."""
    name = _plain(table)
    with _cursor(address) as cursor:
        if address.driver is Driver.SQLITE:
            cursor.execute(f"SELECT COUNT(*) FROM sqlite_master WHERE type IN ('table', 'view') AND name = '{name}'")
        else:
            cursor.execute(f"SELECT COUNT(to_regclass('{name}'))")
        return bool(cursor.fetchone() == (1,))


def key_bounds(address: DatabaseAddress, table: str, key: str, since: Since | None = None) -> tuple[int | None, int | None]:
    """Returns the lowest and highest key of a table, or of its new rows. Returns (None, None) without rows.

    Raises UnreadableDatabase.
    """
    with _cursor(address) as cursor:
        cursor.execute(f"SELECT MIN({_plain(key)}), MAX({_plain(key)}) FROM {_plain(table)}{_where(since=since)}")
        lowest, highest = cursor.fetchone() or (None, None)
        return lowest, highest


def is_whole_key(address: DatabaseAddress, table: str, key: str) -> bool:
    """Returns True if each row has an integer in this column, so that it can partition the table. A view has no rowid.

    Raises UnreadableDatabase.
    """
    name, place = _plain(key), _plain(table)
    with _cursor(address) as cursor:
        if address.driver is Driver.SQLITE:
            cursor.execute(f"SELECT lower(name), upper(type), pk FROM pragma_table_info('{place}')")
            columns = cursor.fetchall()
            if name == ROWID and not _has_rowid(cursor, place):
                return False
            if [column for column in columns if column[2]] == [(name, "INTEGER", 1)] and _has_rowid(cursor, place):
                return True  # this condition tests for the rowid itself
            wrong = f"typeof({name}) <> 'integer'"
        elif name not in _known_columns(cursor, address, table, {name: NUMBER}):
            return False
        else:
            wrong = f"{name} IS NULL"
            if name in _never_null(cursor, table):
                return True
        cursor.execute(f"SELECT COUNT(*) FROM (SELECT 1 FROM {place} WHERE {wrong} LIMIT 1) AS found")
        return bool(cursor.fetchone() == (0,))


def count_rows(address: DatabaseAddress, table: str, limit: int) -> int:
    """Returns the number of rows, but at most `limit`. Raises UnreadableDatabase."""
    counted = f"SELECT COUNT(*) AS rows FROM (SELECT 1 FROM {_plain(table)} LIMIT {limit:d}) AS counted"
    return int(read_query(address, counted)["rows"][0].as_py())


def _has_rowid(cursor: Any, table: str) -> bool:
    cursor.execute(f"SELECT COUNT(*) FROM pragma_table_list('{table}') WHERE schema = 'main' AND type = 'table' AND wr = 0")
    return bool(cursor.fetchone() == (1,))


def read_columns(
    address: DatabaseAddress,
    table: str,
    columns: Mapping[str, str],
    *,
    key: str | None = None,
    keys: KeyRange | None = None,
    nullable: Sequence[str] = (),
    since: Since | None = None,
) -> Iterator[pyarrow.RecordBatch]:
    """Yields these columns of all rows, of a range of keys, or of new rows. Raises UnreadableDatabase.

    `columns` maps names to types. A value of another type is read as NULL, or as the text "(unreadable)". In the text columns
    named in `nullable`, NULL is read as "".
    """
    with _cursor(address) as cursor:
        known = _known_columns(cursor, address, table, columns)
        row = None if key is None else f"CAST({_plain(key)} AS text)"
        selected = [
            f"{readable(address.driver, _plain(name), kind, row, is_nullable=name in nullable, is_known=name in known)} AS {name}"
            for name, kind in columns.items()
        ]
        cursor.execute(f"SELECT {', '.join(selected)} FROM {_plain(table)}{_where(key, keys, since)}")
        yield from cursor.fetch_record_batch()


def read_unreadable(
    address: DatabaseAddress, table: str, columns: Mapping[str, str], key: str | None, nullable: Sequence[str]
) -> list[str]:
    """Returns a text with table, row and column for each value of a wrong type, in the first MAX_UNREADABLE such rows.

    Raises UnreadableDatabase.
    """
    driver = address.driver
    with _cursor(address) as cursor:
        known = _known_columns(cursor, address, table, columns)
        wrong = {
            name: unreadable(driver, _plain(name), kind, is_nullable=name in nullable, is_known=name in known)
            for name, kind in columns.items()
            if not (name in known and (name in nullable or name in _never_null(cursor, table)))
        }
        first_text = next(iter(texts(columns)))
        row = f"CAST({_plain(key)} AS text)" if key else readable(driver, _plain(first_text), "string", is_nullable=False)
        found = []
        if wrong:
            parts = [
                f"CASE WHEN {condition} THEN '; {name}: ' || {shown(driver, name)} ELSE '' END"
                for name, condition in wrong.items()
            ]
            cursor.execute(
                f"SELECT {row} AS place, {' || '.join(parts)} AS problems FROM {_plain(table)} "
                f"WHERE {' OR '.join(wrong.values())} LIMIT {MAX_UNREADABLE}"
            )
            for one in cursor.fetch_arrow_table().to_pylist():
                found.append(f"{table} row {one['place']}: {one['problems'].removeprefix('; ')}")
        if driver is Driver.SQLITE:
            found += _invalid_text(cursor, table, row, texts(columns))
        return found[:MAX_UNREADABLE]


def known_columns(address: DatabaseAddress, table: str, columns: Mapping[str, str]) -> frozenset[str]:
    """Returns the columns whose declared type excludes values of a wrong type. Raises UnreadableDatabase."""
    with _cursor(address) as cursor:
        return _known_columns(cursor, address, table, columns)


def _invalid_text(cursor: Any, table: str, row: str, names: Sequence[str]) -> list[str]:
    """Finds text in SQLite that is not UTF-8. Arrow checks each text, which is twice as fast as a GLOB over the bytes."""
    blobs = [f"CASE WHEN typeof({name}) = 'text' THEN CAST({name} AS BLOB) ELSE x'' END AS {name}" for name in map(_plain, names)]
    cursor.execute(f"SELECT {row} AS place, {', '.join(blobs)} FROM {_plain(table)}")
    found = []
    for batch in cursor.fetch_record_batch():
        for name in names:
            column = batch.column(name)
            try:
                column.cast(pyarrow.string())
            except pyarrow.ArrowInvalid:
                for place, value in zip(batch.column("place").to_pylist(), column.to_pylist(), strict=True):
                    if value.decode(errors="replace").encode() != value:
                        found.append(f"{table} row {place}: {name}: not UTF-8: {value[:40]!r}")
    return found


def _known_columns(cursor: Any, address: DatabaseAddress, table: str, columns: Mapping[str, str]) -> frozenset[str]:
    """Returns the columns whose declared type excludes values of a wrong type. SQLite has no such columns."""
    if address.driver is Driver.SQLITE:
        return frozenset()
    cursor.execute(f"{_select(table, list(columns))} WHERE 1 = 0")
    schema = cursor.fetch_arrow_table().schema
    return frozenset(name for name, kind in columns.items() if is_plain(kind, schema.field(name).type))


def _never_null(cursor: Any, table: str) -> frozenset[str]:
    """Returns PostgreSQL's columns that are declared NOT NULL."""
    cursor.execute(f"SELECT attname FROM pg_attribute WHERE attrelid = '{_plain(table)}'::regclass AND attnotnull")
    return frozenset(cursor.fetch_arrow_table().column(0).to_pylist())


def read_query(address: DatabaseAddress, query: str) -> pyarrow.Table:
    """Returns the result of a query. Raises UnreadableDatabase."""
    with _cursor(address) as cursor:
        cursor.execute(query)
        return cursor.fetch_arrow_table()


def _select(table: str, columns: Sequence[str]) -> str:
    return f"SELECT {', '.join(map(_plain, columns))} FROM {_plain(table)}"


def _where(key: str | None = None, keys: KeyRange | None = None, since: Since | None = None) -> str:
    conditions = []
    if key is not None and keys is not None:
        conditions.append(f"{_plain(key)} BETWEEN {keys.first:d} AND {keys.last:d}")
    if since is not None:
        conditions.append(f"{_plain(since.column)} > {since.value:d}")
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _plain(name: str) -> str:
    """Returns the name if it needs no quotes. Raises UnreadableDatabase otherwise.

    Quotes are avoided because SQLite reads an unknown quoted name as a string.
    """
    if not _PLAIN_NAME.fullmatch(name):
        raise UnreadableDatabase(f"invalid name of a table or column: {name!r}")
    return name


@contextmanager
def _cursor(address: DatabaseAddress) -> Iterator[Any]:
    try:
        with _connect(address) as connection, connection.cursor() as cursor:
            if address.driver is Driver.SQLITE:
                cursor.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_TIMEOUT_MS}")
                cursor.fetchall()
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
            yield cursor
    except (Error, OSError, pyarrow.ArrowException) as error:
        raise UnreadableDatabase(f"database {address.name}: {address.without_password(_said(error))}") from None


def _connect(address: DatabaseAddress) -> Connection:
    """Connects to the database. On PostgreSQL, all statements of a cursor are in one transaction.

    Otherwise PgBouncer in transaction pooling mode could send each statement to a different session. The driver needs one
    session, because it describes and runs a query with two requests.
    """
    if address.driver is Driver.POSTGRESQL:
        connection: Connection = adbc_driver_postgresql.dbapi.connect(address.uri, autocommit=False)
    else:
        connection = adbc_driver_sqlite.dbapi.connect(address.uri + _how_to_open(Path(address.name)), autocommit=True)
    return connection


def _how_to_open(path: Path) -> str:
    """Returns the additional URI parameters of a SQLite file. Raises OSError, and UnreadableDatabase if it is not readable.

    A file in WAL mode needs an index file (-shm) beside it. If this user cannot create an index file, and no process has the
    database open, the database is opened as immutable.
    """
    if not path.is_file():
        raise UnreadableDatabase(f"database {path}: no such file")
    if not os.access(path, os.R_OK):
        raise UnreadableDatabase(f"database {path}: permission denied; {_READ_AS_OWNER}")
    wal, index = path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")
    if os.access(path.parent, os.W_OK) or (os.access(wal, os.R_OK) and os.access(index, os.R_OK)):
        # The file is not opened here: its closing would cancel the locks of another thread that reads it with SQLite
        # (https://www.sqlite.org/howtocorrupt.html, 2.2).
        return ""
    with path.open("rb") as file:
        if file.read(_HEADER_BYTES)[_WAL_BYTE:] != _WAL:
            return ""
    if wal.exists():
        reason = "it is in use, or was not closed, and this user cannot create the index (-shm) beside it"
        raise UnreadableDatabase(f"database {path}: {reason}; {_READ_AS_OWNER}")
    return "&immutable=1"


def _said(error: Exception) -> str:
    """Returns the driver's message without the query and the status code."""
    text = str(error).partition("\nquery:")[0]
    return re.sub(r"^[A-Z_]+: ", "", text.strip())
