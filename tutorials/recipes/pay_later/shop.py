"""The shop: an app factory that gunicorn calls in each worker.

Orders and their half messages remain pending until the payment.
"""

import json
import os
from typing import Any

from flask import Flask, abort, request
from sqlalchemy import Engine
from sqlalchemy.orm import registry
from sqlmodel import Field, Session, SQLModel, create_engine

from rocketmq_broker.client import EventLoopThread, LocalTransactionState, Message, MessageExt, TransactionProducer
from rocketmq_broker.databases import LocalOutcome
from rocketmq_broker.databases.sqlalchemy import add_tables, barrier, conclude, settle

TOPIC = "paid-orders"
LAST_CHECK = 10
"""The number of the check-back at which an unpaid order expires.

It must be smaller than `transactionCheckMax` (default 15), the number of check-backs after which the broker discards a message.
"""


class Base(SQLModel, registry=registry()):
    """The base class of the tables. All tables are created in each database, which uses only some of them."""


class Order(Base, table=True):
    """An order that is paid later."""

    order_id: str = Field(primary_key=True)
    customer: str
    transaction_id: str


add_tables(Base.metadata)


class OrderListener:
    """The transaction listener. Copy it to your program.

    An order is PENDING until `conclude` stores the decision together with the payment.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def execute_local_transaction(self, message: Message, order: Any) -> LocalTransactionState:
        """Stores the order and returns UNKNOWN."""
        with Session(self._engine) as session, barrier(session, message, LocalOutcome.PENDING):
            session.add(Order(**order, transaction_id=str(message.transaction_id)))
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns UNKNOWN before the payment. Rolls back an unpaid order at the last check-back."""
        with Session(self._engine) as session:
            state = settle(session, message)
            is_last = message.transaction_check_times >= LAST_CHECK
            if state is LocalTransactionState.UNKNOWN and is_last:
                conclude(session, message.transaction_id or "", LocalOutcome.ROLLED_BACK)
                session.commit()
                state = settle(session, message)
        return state


def create_app() -> Flask:
    """Returns the application. Uses the environment variables DATABASE_URL and NAMESRV_ADDR.

    Starts a thread and a producer, which end when the worker exits.
    """
    engine = create_engine(os.environ["DATABASE_URL"])
    loop = EventLoopThread()
    loop.start()
    producer = loop.enter(TransactionProducer("pay-later", OrderListener(engine)))
    app = Flask(__name__)
    app.extensions["rocketmq"] = loop

    @app.put("/orders/<order_id>")
    def place(order_id: str) -> tuple[dict[str, str], int]:
        order = {"order_id": order_id, "customer": request.json["customer"]}
        message = Message.of(TOPIC, json.dumps(order), keys=[order_id])
        loop.run(producer.send_message_in_transaction(message, order))
        with Session(engine) as session:
            return order, 201 if session.get(Order, order_id) else 503

    @app.put("/orders/<order_id>/payment")
    def pay(order_id: str) -> dict[str, str]:
        with Session(engine) as session, session.begin():
            order = session.get(Order, order_id) or abort(404)
            if not conclude(session, order.transaction_id, LocalOutcome.COMMITTED):
                abort(409, "the order is paid already, or it was given up")
            return {"order_id": order_id, "state": "paid"}

    return app
