"""The order service. Either an order and its message are both committed, or neither is."""

import json
import os
from typing import Any

from flask import Flask, request
from sqlalchemy import Engine
from sqlalchemy.orm import registry
from sqlmodel import Field, Session, SQLModel, create_engine

from rocketmq_broker.client import EventLoopThread, LocalTransactionState, Message, MessageExt, TransactionProducer
from rocketmq_broker.databases.sqlalchemy import add_tables, barrier, settle

TOPIC = "orders-for-credit"


class Base(SQLModel, registry=registry()):
    """The base class of the order database's tables."""


class Order(Base, table=True):
    """An order, as stored in the order database."""

    order_id: str = Field(primary_key=True)
    customer: str
    total_cents: int


add_tables(Base.metadata)


class OrderListener:
    """The transaction listener. The outcome of each transaction is stored in the order database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def execute_local_transaction(self, message: Message, order: Any) -> LocalTransactionState:
        """Inserts the order and the outcome of its transaction in one database transaction."""
        with Session(self._engine) as session, barrier(session, message):
            session.add(Order(**order))
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the stored outcome. Without one, stores and returns ROLLBACK, so that the order can no longer commit."""
        with Session(self._engine) as session:
            return settle(session, message)


def create_app() -> Flask:
    """Returns the application. Uses the environment variables DATABASE_URL and NAMESRV_ADDR."""
    engine = create_engine(os.environ["DATABASE_URL"])
    loop = EventLoopThread()
    loop.start()
    producer = loop.enter(TransactionProducer("order-credit", OrderListener(engine)))
    app = Flask(__name__)
    app.extensions["rocketmq"] = loop

    @app.put("/orders/<order_id>")
    def place(order_id: str) -> tuple[dict[str, Any], int]:
        order = {"order_id": order_id, "customer": request.json["customer"], "total_cents": request.json["total_cents"]}
        loop.run(producer.send_message_in_transaction(Message.of(TOPIC, json.dumps(order), keys=[order_id]), order))
        with Session(engine) as session:
            stored = session.get(Order, order_id)
        return order, 201 if stored and stored.model_dump() == order else 409 if stored else 503

    return app
