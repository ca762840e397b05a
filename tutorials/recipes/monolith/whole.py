"""The monolith, which stores an order and its credit points in one local transaction, with Flask and SQLAlchemy."""

from collections.abc import Callable
from typing import Any

from flask import Flask, request
from sqlalchemy import CheckConstraint, Engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

Placing = Callable[[dict[str, Any]], bool | None]
"""A function that places an order.

Returns True if the order is stored, False if it is refused, and None if the result is unknown.
"""


class Base(DeclarativeBase):
    """The base class of the tables. The monolith keeps all of them in one database."""


class Order(Base):
    """An order. A database constraint rejects more than 1000 points."""

    __tablename__ = "orders"
    __table_args__ = (CheckConstraint("points <= 1000"),)
    order_id: Mapped[str] = mapped_column(primary_key=True)
    points: Mapped[int]


class Credit(Base):
    """The credit points of an order."""

    __tablename__ = "credits"
    order_id: Mapped[str] = mapped_column(primary_key=True)
    points: Mapped[int]


def store(engine: Engine, *tables: type[Base]) -> Placing:
    """Returns a function that stores a row in each of `tables` in one local transaction.

    The monolith passes both tables; the split program passes one.
    """

    def place(order: dict[str, Any]) -> bool:
        with Session(engine) as session, session.begin():
            session.add_all([table(**order) for table in tables])
        return True

    return place


def create_app(place: Placing) -> Flask:
    """Returns the orders application. It is the same before and after the split."""
    app = Flask(__name__)

    @app.put("/orders/<order_id>")
    def put(order_id: str) -> tuple[dict[str, str], int]:
        is_stored = place({"order_id": order_id, "points": request.json["points"]})
        return {"order_id": order_id}, {True: 201, False: 409, None: 202}[is_stored]

    return app
