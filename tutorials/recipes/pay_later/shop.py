"""The shop: an app factory that gunicorn calls in each worker.

Orders and their half messages remain pending until the payment.
"""

import json
import os
import time
from typing import Any

from flask import Flask, abort, request
from sqlalchemy import Engine
from sqlalchemy.orm import registry
from sqlmodel import Field, Session, SQLModel, create_engine, select

from rocketmq_broker.client import EventLoopThread, LocalTransactionState, Message, MessageExt, TransactionProducer
from rocketmq_broker.databases import LocalOutcome
from rocketmq_broker.databases.sqlalchemy import add_tables, barrier, conclude, settle

TOPIC = "paid-orders"
PAYABLE_S = 300
"""How long an order can be paid, in seconds: much less than 15 check-backs take (15 minutes, in RocketMQ 5 half of it).

Then the broker discards the message, and a payment would give no coupon.
"""


class Base(SQLModel, registry=registry()):
    """The base class of the tables. All tables are created in each database, which uses only some of them."""


class Order(Base, table=True):
    """An order that is paid later."""

    order_id: str = Field(primary_key=True)
    customer: str
    transaction_id: str
    payable_until: float  # Unix time in seconds


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
            session.add(Order(**order, transaction_id=str(message.transaction_id), payable_until=time.time() + PAYABLE_S))
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns UNKNOWN before the payment. Rolls back an order that was not paid in time."""
        with Session(self._engine) as session:
            state = settle(session, message)
            overdue = select(Order).where(Order.transaction_id == message.transaction_id, Order.payable_until < time.time())
            if state is LocalTransactionState.UNKNOWN and (order := session.exec(overdue).first()):
                conclude(session, order.transaction_id, LocalOutcome.ROLLED_BACK)
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
            if time.time() > order.payable_until or not conclude(session, order.transaction_id, LocalOutcome.COMMITTED):
                abort(409, "the order is paid already, or it was not paid in time")
            return {"order_id": order_id, "state": "paid"}

    return app
