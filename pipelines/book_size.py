"""How large the books are, found out without reading them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pipelines.sources.databases.adbc import key_bounds
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.tables import CREDITS, ORDER_ITEMS, ORDERS, Table
from pipelines.sources.logs.message_logs import MessageLog

MOST_SMALL_ROWS: Final = 100_000


def are_small(order_database: DatabaseAddress, credit_database: DatabaseAddress, logs: Iterable[MessageLog]) -> bool:
    """Whether one process reads the books in a few seconds. Raises UnreadableDatabase, UnreadableStore."""
    tables = ((order_database, ORDERS), (order_database, ORDER_ITEMS), (credit_database, CREDITS))
    rows = sum(_most_rows(address, table) for address, table in tables)
    return rows <= MOST_SMALL_ROWS and all(log.is_small() for log in logs)


def _most_rows(address: DatabaseAddress, table: Table) -> int:
    """As many rows as the keys leave room for."""
    lowest, highest = key_bounds(address, table.name, table.key or "id")
    return 0 if lowest is None or highest is None else highest - lowest + 1
