"""The split monolith: orders in one database, credits in another, and a message between them."""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, Message, MessageExt, MessageListener
from rocketmq_broker.databases.sqlalchemy import add_tables, barrier, once, settle
from tutorials.recipes.monolith.whole import Base, Credit, Order, Placing

TOPIC = "split-orders"

add_tables(Base.metadata)


def message_of(order: dict[str, Any]) -> Message:
    """Returns the message about an order."""
    return Message.of(TOPIC, json.dumps(order), keys=[order["order_id"]])


def in_steps(*steps: Placing) -> Placing:
    """Returns a function that places an order in separate steps: store and send, or send and store. It can fail in between."""
    return lambda order: all(step(order) for step in steps)


def in_transaction(send: Callable[[Message, Any], Any]) -> Placing:
    """Returns a function that places an order in a transaction. A check-back settles an unknown outcome."""
    known = {LocalTransactionState.COMMIT_MESSAGE: True, LocalTransactionState.ROLLBACK_MESSAGE: False}
    return lambda order: known.get(send(message_of(order), order).local_transaction_state)


class OrderListener:
    """The transaction listener, to copy. It stores an order and its transaction's state in one local commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def execute_local_transaction(self, message: Message, order: Any) -> LocalTransactionState:
        """Stores the order. Other exceptions count as UNKNOWN, and a check-back decides."""
        try:
            with Session(self._engine) as session, barrier(session, message):
                session.add(Order(**order))
        except IntegrityError:  # the database says that it has stored nothing
            return LocalTransactionState.ROLLBACK_MESSAGE
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Answers from the transaction's row. Writes ROLLED_BACK first if the row is missing."""
        with Session(self._engine) as session:
            return settle(session, message)


def credit_listener(engine: Engine) -> MessageListener:
    """Returns the consumer's listener, which credits a message once even if it is delivered twice."""

    def credit(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            with Session(engine) as session, once(session, message, "credits") as is_first:
                if is_first:
                    session.add(Credit(**json.loads(message.text)))
        return ConsumeStatus.CONSUME_SUCCESS

    return credit
