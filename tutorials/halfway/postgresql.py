"""The order database and the credit database for XA: PostgreSQL with max_prepared_transactions above 0.

ORDERS_URL and CREDITS_URL name them. SQLite has no PREPARE TRANSACTION.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg


@contextmanager
def connected(service: str) -> Iterator[psycopg.Connection]:
    """Opens the database of a service, and creates its table. Closes the connection without a commit."""
    connection = psycopg.connect(os.environ[f"{service.upper()}_URL"])
    try:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {service} (order_id TEXT PRIMARY KEY, state TEXT NOT NULL)".encode())
        connection.commit()
        yield connection
    finally:
        connection.close()
