"""Reads the order database and the credit database, on SQLite or PostgreSQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import sqlalchemy
from sqlalchemy import Engine, Row, text
from sqlalchemy.exc import SQLAlchemyError

from demo.errors import DemoError
from service_runtime.database.database_url import POSTGRESQL, UnusableUrl, parse_database_url

ORDER_DATABASE: Final = "order database"
CREDIT_DATABASE: Final = "credit database"


@dataclass(frozen=True, slots=True)
class BookedOrder:
    """A stored order."""

    order_id: str
    customer: str
    total_cents: int
    committed_at_ms: int
    """The time of the local transaction, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class BookedCredit:
    """A stored credit of an order."""

    order_id: str
    customer: str
    points: int
    transaction_id: str | None
    created_at_ms: int


class ShopBooks:
    """Reads the order database and the credit database. The methods raise DemoError if a database cannot be read."""

    def __init__(self, order_database_url: str, credit_database_url: str) -> None:
        """Creates a reader without connecting. The URLs include passwords. Raises DemoError if a URL is invalid."""
        self._orders = database(ORDER_DATABASE, order_database_url)
        self._credits = database(CREDIT_DATABASE, credit_database_url)

    def __enter__(self) -> Self:
        """Returns this object. The connections are closed after the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes the connections to both databases."""
        self._orders.dispose()
        self._credits.dispose()

    def orders(self) -> dict[str, BookedOrder]:
        """Returns all orders, keyed by order id."""
        rows = rows_of(
            self._orders,
            "SELECT o.order_id, o.customer, o.total_cents, t.created_at_ms AS committed_at_ms"
            " FROM orders o JOIN transactions t ON t.order_id = o.order_id",
        )
        return {row.order_id: BookedOrder(**row._asdict()) for row in rows}

    def rolled_back(self) -> frozenset[str]:
        """Returns the ids of transactions that have a ROLLED_BACK row in the order database."""
        return frozenset(
            row[0] for row in rows_of(self._orders, "SELECT transaction_id FROM transactions WHERE state = 'ROLLED_BACK'")
        )

    def credits(self) -> list[BookedCredit]:
        """Returns all credits, oldest first."""
        rows = rows_of(self._credits, "SELECT order_id, customer, points, transaction_id, created_at_ms FROM credits ORDER BY id")
        return [BookedCredit(**row._asdict()) for row in rows]

    def credited(self) -> int:
        """Returns the number of credits."""
        (row,) = rows_of(self._credits, "SELECT count(*) FROM credits")
        return int(row[0])

    def placed(self) -> int:
        """Returns the number of orders."""
        (row,) = rows_of(self._orders, "SELECT count(*) FROM orders")
        return int(row[0])


def database(name: str, url: str) -> Engine:
    """Returns the engine of a database. Raises DemoError if the URL is invalid."""
    try:
        parsed = parse_database_url(url)
    except UnusableUrl as error:
        raise DemoError(f"invalid URL for the {name}: {error}") from None
    # A PgBouncer in transaction pooling mode does not support prepared statements.
    unprepared = {"prepare_threshold": None} if parsed.drivername == POSTGRESQL else {}
    return sqlalchemy.create_engine(parsed, hide_parameters=True, connect_args=unprepared, pool_pre_ping=True)


def rows_of(engine: Engine, query: str, **values: str) -> Sequence[Row[Any]]:
    """Returns the rows of a query. Raises DemoError if the database cannot be read."""
    try:
        with engine.connect() as connection:
            return connection.execute(text(query), values).all()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise DemoError(f"cannot read the database {engine.url.render_as_string(hide_password=True)}: {reason}") from None
