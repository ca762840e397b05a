"""Reading tables as Arrow batches through ADBC: the only module that talks to databases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import pyarrow
from adbc_driver_manager.dbapi import Connection, Error

from pipelines.errors import UnreadableDatabase
from pipelines.sources.database_address import DatabaseAddress, Driver
from pipelines.sources.key_ranges import KeyRange, Since

BATCH_ROWS = 65_536
"""SQLite has no column types: its driver guesses them from the first batch, which had better be a long one."""

SQLITE_BUSY_TIMEOUT_MS = 10_000

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_table(address: DatabaseAddress, table: str, columns: Sequence[str]) -> None:
    """Returns if the table can be read and has these columns. Raises UnreadableDatabase."""
    with _cursor(address) as cursor:
        cursor.execute(f"{_select(table, columns)} WHERE 1 = 0")
        cursor.fetchall()


def key_bounds(address: DatabaseAddress, table: str, key: str, since: Since | None = None) -> tuple[int | None, int | None]:
    """The lowest and the highest key of a table, or of what is new in it; None and None if that is nothing.

    Raises UnreadableDatabase.
    """
    with _cursor(address) as cursor:
        cursor.execute(f"SELECT MIN({_plain(key)}), MAX({_plain(key)}) FROM {_plain(table)}{_where(since=since)}")
        lowest, highest = cursor.fetchone() or (None, None)
        return lowest, highest


def read_columns(
    address: DatabaseAddress,
    table: str,
    columns: Sequence[str],
    *,
    key: str | None = None,
    keys: KeyRange | None = None,
    nullable: Sequence[str] = (),
    since: Since | None = None,
) -> Iterator[pyarrow.RecordBatch]:
    """These columns of a table, or of one range of its key, or of what is new in it. Raises UnreadableDatabase.

    NULL in a column of `nullable`, which must be text, becomes "": SQLite's driver would take a column that begins with many
    NULLs for integers.
    """
    with _cursor(address) as cursor:
        cursor.execute(_select(table, columns, nullable) + _where(key, keys, since))
        yield from cursor.fetch_record_batch()


def read_query(address: DatabaseAddress, query: str) -> pyarrow.Table:
    """What a query of ours answers. Raises UnreadableDatabase."""
    with _cursor(address) as cursor:
        cursor.execute(query)
        return cursor.fetch_arrow_table()


def _select(table: str, columns: Sequence[str], nullable: Sequence[str] = ()) -> str:
    selected = [f"COALESCE({_plain(name)}, '') AS {name}" if name in nullable else _plain(name) for name in columns]
    return f"SELECT {', '.join(selected)} FROM {_plain(table)}"


def _where(key: str | None = None, keys: KeyRange | None = None, since: Since | None = None) -> str:
    conditions = []
    if key is not None and keys is not None:
        conditions.append(f"{_plain(key)} BETWEEN {keys.first:d} AND {keys.last:d}")
    if since is not None:
        conditions.append(f"{_plain(since.column)} > {since.value:d}")
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _plain(name: str) -> str:
    """A name that needs no quotes; SQLite would read a quoted name that it does not know as a string."""
    if not _PLAIN_NAME.fullmatch(name):
        raise UnreadableDatabase(f"{name!r} is no plain name of a table or column")
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
    if address.driver is Driver.SQLITE and not Path(address.name).is_file():
        raise UnreadableDatabase(f"database {address.name}: there is no such file")
    driver = adbc_driver_postgresql.dbapi if address.driver is Driver.POSTGRESQL else adbc_driver_sqlite.dbapi
    connection: Connection = driver.connect(address.uri, autocommit=True)
    return connection


def _said(error: Exception) -> str:
    """What the driver has to say, without the query it repeats and the status code it begins with."""
    text = str(error).partition("\nquery:")[0]
    return re.sub(r"^[A-Z_]+: ", "", text.strip())
