"""A look into both services' databases, SQLite or PostgreSQL, that changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy
from sqlalchemy import Engine, Row, text

from service_runtime.database_url import parse_database_url


@dataclass(frozen=True, slots=True)
class OrderRow:
    """An order that the order service has committed."""

    order_id: str
    customer: str
    total_cents: int
    committed_at_ms: int
    """When the local transaction wrote it, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class CreditRow:
    """The credit that came of it."""

    order_id: str
    customer: str
    points: int
    transaction_id: str | None
    created_at_ms: int


class Books:
    """The order database and the credit database."""

    def __init__(self, order_database_url: str, credit_database_url: str) -> None:
        """URLs as the services take them."""
        self._orders = sqlalchemy.create_engine(parse_database_url(order_database_url))
        self._credits = sqlalchemy.create_engine(parse_database_url(credit_database_url))

    def orders(self) -> dict[str, OrderRow]:
        """All orders, by id."""
        rows = _all(
            self._orders,
            "SELECT o.order_id, o.customer, o.total_cents, t.created_at_ms AS committed_at_ms"
            " FROM orders o JOIN transactions t ON t.order_id = o.order_id",
        )
        return {row.order_id: OrderRow(**row._asdict()) for row in rows}

    def credits(self) -> list[CreditRow]:
        """All credits, as they were given."""
        rows = _all(self._credits, "SELECT order_id, customer, points, transaction_id, created_at_ms FROM credits ORDER BY id")
        return [CreditRow(**row._asdict()) for row in rows]

    def credited(self) -> int:
        """How many credits there are."""
        (row,) = _all(self._credits, "SELECT count(*) FROM credits")
        return int(row[0])

    def placed(self) -> int:
        """How many orders there are."""
        (row,) = _all(self._orders, "SELECT count(*) FROM orders")
        return int(row[0])

    def close(self) -> None:
        """Let go of both databases."""
        self._orders.dispose()
        self._credits.dispose()


def _all(engine: Engine, query: str) -> Sequence[Row[Any]]:
    with engine.connect() as connection:
        return connection.execute(text(query)).all()
