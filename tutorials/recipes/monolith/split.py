"""The split monolith: one database for orders, another for credits, and a message that connects them."""

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
    """Returns a function that places an order in the given steps: store and send, or send and store.

    If a failure occurs between the steps, only the first step is done.
    """
    return lambda order: all(step(order) for step in steps)


def in_transaction(send: Callable[[Message, Any], Any]) -> Placing:
    """Returns a function that places an order with a transactional message. A check-back settles an unknown outcome."""
    known = {LocalTransactionState.COMMIT_MESSAGE: True, LocalTransactionState.ROLLBACK_MESSAGE: False}
    return lambda order: known.get(send(message_of(order), order).local_transaction_state)


class OrderListener:
    """The transaction listener. Copy it to your program.

    It stores an order and the state of its transaction in one local commit.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def execute_local_transaction(self, message: Message, order: Any) -> LocalTransactionState:
        """Stores the order. An exception other than a refusal counts as UNKNOWN, and a check-back decides."""
        try:
            with Session(self._engine) as session, barrier(session, message):
                session.add(Order(**order))
        except IntegrityError:  # the database has refused the rows and stored nothing
            return LocalTransactionState.ROLLBACK_MESSAGE
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision stored with the transaction. Stores ROLLED_BACK first if no decision is stored."""
        with Session(self._engine) as session:
            return settle(session, message)


def credit_listener(engine: Engine) -> MessageListener:
    """Returns the consumer's listener. It stores one credit for each message, even if the message is delivered twice."""

    def credit(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            with Session(engine) as session, once(session, message, "credits") as is_first:
                if is_first:
                    session.add(Credit(**json.loads(message.text)))
        return ConsumeStatus.CONSUME_SUCCESS

    return credit
