"""The monolith before: an order and its credit points under one local transaction. Flask and SQLAlchemy."""

from collections.abc import Callable
from typing import Any

from flask import Flask, request
from sqlalchemy import CheckConstraint, Engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

Placing = Callable[[dict[str, Any]], bool | None]
"""Places an order. Returns whether it is stored; None if that is not known yet."""


class Base(DeclarativeBase):
    """The tables, all of them in one database as long as the monolith is whole."""


class Order(Base):
    """An order. The database itself refuses one of more than 1000 points."""

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
    """Returns a way that stores a row in each table under one local transaction: of both tables, it is the monolith's."""

    def place(order: dict[str, Any]) -> bool:
        with Session(engine) as session, session.begin():
            session.add_all([table(**order) for table in tables])
        return True

    return place


def create_app(place: Placing) -> Flask:
    """Returns the application of the orders, which stays the same when the monolith is split."""
    app = Flask(__name__)

    @app.put("/orders/<order_id>")
    def put(order_id: str) -> tuple[dict[str, str], int]:
        is_stored = place({"order_id": order_id, "points": request.json["points"]})
        return {"order_id": order_id}, {True: 201, False: 409, None: 202}[is_stored]

    return app
