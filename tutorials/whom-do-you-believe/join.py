"""Compares both databases with one SQL join: finds missing credits, credits without an order, and different amounts."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

JOIN = """
    SELECT orders.customer, orders.total_cents, credits.amount_cents
    FROM orders LEFT JOIN credits ON credits.order_id = orders.order_id
    WHERE credits.amount_cents IS NULL OR credits.amount_cents <> orders.total_cents
    UNION ALL
    SELECT credits.customer, NULL, credits.amount_cents
    FROM credits LEFT JOIN orders ON orders.order_id = credits.order_id
    WHERE orders.order_id IS NULL
"""


def differences(folder: Path) -> list[tuple[str, int | None, int | None]]:
    """Returns the customer, the cents ordered and the cents credited for each difference."""
    with closing(sqlite3.connect(f"{(folder / 'orders.db').absolute().as_uri()}?mode=ro", uri=True)) as database:
        database.execute("ATTACH ? AS ledger", (f"{(folder / 'credits.db').absolute().as_uri()}?mode=ro",))
        return database.execute(JOIN).fetchall()


if __name__ == "__main__":
    for customer, ordered, credited in differences(Path(sys.argv[1])):
        print(f"{customer}: ordered {ordered}, credited {credited}")
