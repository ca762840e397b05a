"""Compares the order database with the credit database. The comparison is the same for all approaches."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_COUNT_STORED: Final = "SELECT COUNT(*) FROM orders"
_COUNT_MISSING: Final = "SELECT COUNT(*) FROM orders WHERE order_id NOT IN (SELECT order_id FROM credits)"
_COUNT_PHANTOM: Final = "SELECT COUNT(*) FROM credits WHERE order_id NOT IN (SELECT order_id FROM orders)"
_COUNT_DOUBLED: Final = "SELECT COUNT(*) FROM (SELECT 1 FROM credits_without_key GROUP BY order_id HAVING COUNT(*) > 1)"
_CREDITED_AT: Final = "SELECT order_id, at_s FROM credits JOIN orders USING (order_id)"
_STORED_NUMBERS: Final = "SELECT number FROM orders"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the comparison."""

    stored: int
    """The number of orders in the order database."""
    missing: int
    """The number of orders without a credit."""
    phantom: int
    """The number of credits without an order."""
    doubled: int
    """The number of orders that a consumer without a unique key credited more than once."""
    latencies_ms: tuple[float, ...]
    """The times in milliseconds from request to credit of the credited orders, in ascending order."""
    stored_numbers: frozenset[int]


def judge(order_file: Path, credit_file: Path, requested_at_s: Mapping[str, float]) -> Verdict:
    """Compares the databases. `requested_at_s` maps the id of each order to the time of its request in seconds."""
    with closing(sqlite3.connect(f"{order_file.as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("ATTACH ? AS credit", (f"{credit_file.as_uri()}?mode=ro",))
        stored, missing, phantom, doubled = (
            int(connection.execute(query).fetchone()[0])
            for query in (_COUNT_STORED, _COUNT_MISSING, _COUNT_PHANTOM, _COUNT_DOUBLED)
        )
        credited = connection.execute(_CREDITED_AT).fetchall()
        numbers = frozenset(number for (number,) in connection.execute(_STORED_NUMBERS))
    latencies = sorted(1000 * (at_s - requested_at_s[order_id]) for order_id, at_s in credited)
    return Verdict(stored, missing, phantom, doubled, tuple(latencies), numbers)
