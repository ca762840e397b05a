"""The monolith in two: orders in one database, credits in another, and a message between them."""

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
    """Returns the message that tells the credits of an order."""
    return Message.of(TOPIC, json.dumps(order), keys=[order["order_id"]])


def in_steps(*steps: Placing) -> Placing:
    """Returns a way that breaks between its steps, each of which returns True: store and send, or send and store."""
    return lambda order: all(step(order) for step in steps)


def in_transaction(send: Callable[[Message, Any], Any]) -> Placing:
    """Returns the way that holds. What is not known yet, the check-back will ask."""
    known = {LocalTransactionState.COMMIT_MESSAGE: True, LocalTransactionState.ROLLBACK_MESSAGE: False}
    return lambda order: known.get(send(message_of(order), order).local_transaction_state)


class OrderListener:
    """The transaction listener, to copy: the order and its transaction's state get one local commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def execute_local_transaction(self, message: Message, order: Any) -> LocalTransactionState:
        """Stores the order. Another error counts as UNKNOWN, and the check-back decides."""
        try:
            with Session(self._engine) as session, barrier(session, message):
                session.add(Order(**order))
        except IntegrityError:  # the database says that it has stored nothing
            return LocalTransactionState.ROLLBACK_MESSAGE
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Answers by the transaction's row; without one it writes ROLLED_BACK first."""
        with Session(self._engine) as session:
            return settle(session, message)


def credit_listener(engine: Engine) -> MessageListener:
    """Returns the consumer's listener: a message that comes twice is credited once."""

    def credit(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            with Session(engine) as session, once(session, message, "credits") as is_first:
                if is_first:
                    session.add(Credit(**json.loads(message.text)))
        return ConsumeStatus.CONSUME_SUCCESS

    return credit
