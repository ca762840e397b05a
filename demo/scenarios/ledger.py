"""Both databases' rows of one customer or one order: the verdict of a scenario, and witnesses for the timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy
from sqlalchemy import Engine, Row, text
from sqlalchemy.exc import SQLAlchemyError

from demo.errors import DemoError
from demo.scenarios.scenario import Database, Finding, Question
from rocketmq_broker.admin.timeline.event import Arrow, Event

_CREDITS_OF: Final = "SELECT count(*) FROM credits WHERE customer = :customer"

_ORDER_DATABASE: Final = "order database"
_CREDIT_DATABASE: Final = "credit database"


class Ledgers:
    """Reads the order database and the credit database. Methods raise DemoError if one of them cannot be read."""

    def __init__(self, order_database_url: str, credit_database_url: str) -> None:
        self._orders = sqlalchemy.create_engine(order_database_url)
        self._credits = sqlalchemy.create_engine(credit_database_url)

    def answer(self, questions: Sequence[Question], customer: str) -> list[Finding]:
        """Returns the answers about a customer."""
        engines = {Database.ORDERS: self._orders, Database.CREDITS: self._credits}
        return [Finding(one, _count(engines[one.database], one.sql, customer)) for one in questions]

    def credits_of(self, customer: str) -> int:
        """Returns the number of the customer's entries in the credit database."""
        return _count(self._credits, _CREDITS_OF, customer)

    def order_of(self, customer: str) -> tuple[str, str] | None:
        """Returns id and state of the customer's newest order; None without one."""
        sql = "SELECT order_id, state FROM orders WHERE customer = :customer ORDER BY created_at_ms DESC LIMIT 1"
        rows = _rows(self._orders, sql, {"customer": customer})
        return (str(rows[0].order_id), str(rows[0].state)) if rows else None

    def events(self, transaction_id: str) -> list[Event]:
        """Returns both databases' events of a transaction."""
        named = {"transaction_id": transaction_id}
        of_order = _rows(
            self._orders,
            "SELECT t.state, t.created_at_ms, o.order_id, o.customer, o.total_cents FROM transactions t"
            " LEFT JOIN orders o ON o.order_id = t.order_id WHERE t.transaction_id = :transaction_id",
            named,
        )
        of_credit = _rows(
            self._credits, "SELECT points, created_at_ms FROM credits WHERE transaction_id = :transaction_id ORDER BY id", named
        )
        return [*map(_order_event, of_order), *map(_credit_event, of_credit)]


def _order_event(row: Row[Any]) -> Event:
    if row.order_id is None:
        what = "the order service writes the marker ROLLED_BACK: no order will come under this transaction"
        return Event(row.created_at_ms, what, _ORDER_DATABASE, Arrow("order_service", _ORDER_DATABASE, "marker ROLLED_BACK"))
    what = f"local transaction: order {row.order_id} of {row.total_cents / 100:.2f} for {row.customer}"
    return Event(row.created_at_ms, what, _ORDER_DATABASE, Arrow("order_service", _ORDER_DATABASE, "local commit"))


def _credit_event(row: Row[Any]) -> Event:
    what = f"{row.points} credit points, stored by the Celery worker"
    return Event(row.created_at_ms, what, _CREDIT_DATABASE, Arrow("credit_service", _CREDIT_DATABASE, f"{row.points} points"))


def _count(engine: Engine, sql: str, customer: str) -> int:
    return int(_rows(engine, sql, {"customer": customer})[0][0])


def _rows(engine: Engine, sql: str, values: Mapping[str, str]) -> Sequence[Row[Any]]:
    try:
        with engine.connect() as connection:
            return connection.execute(text(sql), dict(values)).all()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise DemoError(f"the database {engine.url.render_as_string(hide_password=True)} cannot be read: {reason}") from None
