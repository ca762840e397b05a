"""How large the books are, found out without reading them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pipelines.sources.adbc import key_bounds
from pipelines.sources.commit_log import split_log
from pipelines.sources.database_address import DatabaseAddress
from pipelines.sources.tables import CREDITS, ORDER_ITEMS, ORDERS, Table

MOST_SMALL_ROWS: Final = 100_000
MOST_SMALL_LOG_BYTES: Final = 64 * 1024 * 1024


def are_small(order_database: DatabaseAddress, credit_database: DatabaseAddress, stores: Iterable[Path]) -> bool:
    """Whether one process reads the books in a few seconds. Raises UnreadableDatabase, UnreadableStore."""
    tables = ((order_database, ORDERS), (order_database, ORDER_ITEMS), (credit_database, CREDITS))
    rows = sum(_most_rows(address, table) for address, table in tables)
    return rows <= MOST_SMALL_ROWS and log_is_small(stores)


def log_is_small(stores: Iterable[Path]) -> bool:
    """Whether one process reads the commit logs in a few seconds. Raises UnreadableStore."""
    return sum(part.end - part.start for store in stores for part in split_log(store)) <= MOST_SMALL_LOG_BYTES


def _most_rows(address: DatabaseAddress, table: Table) -> int:
    """As many rows as the keys leave room for."""
    lowest, highest = key_bounds(address, table.name, table.key or "id")
    return 0 if lowest is None or highest is None else highest - lowest + 1
