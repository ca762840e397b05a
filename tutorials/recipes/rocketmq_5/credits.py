"""The credits: a simple consumer of Apache's client stores each message in the inbox, and acknowledges it."""

from collections.abc import Sequence
from typing import Any

import rocketmq
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from rocketmq_broker.client import Message
from rocketmq_broker.databases.sqlalchemy import Inbox, add_inbox, add_tables
from tutorials.recipes.rocketmq_5.shop import TOPIC, converted


class Base(DeclarativeBase):
    """The base class of the credit database's tables."""


class Credit(Base):
    """The credit of an order, which is always one point."""

    __tablename__ = "credits"
    order_id: Mapped[str] = mapped_column(primary_key=True)


add_tables(Base.metadata)
add_inbox(Base.metadata)


def started_consumer(endpoints: str) -> Any:
    """Returns a running consumer. Its `receive` calls wait up to 5 s for messages."""
    configuration = rocketmq.ClientConfiguration(endpoints, rocketmq.Credentials())
    consumer = rocketmq.SimpleConsumer(configuration, "credits-by-rocketmq-5", {TOPIC: rocketmq.FilterExpression()}, 5)
    consumer.startup()
    return consumer


def receive(consumer: Any, inbox: Inbox[Session]) -> None:
    """Stores messages in the inbox, then acknowledges them. Messages not acknowledged within 30 s are redelivered."""
    messages = consumer.receive(16, 30)
    inbox.put(map(converted, messages))
    for message in messages:
        consumer.ack(message)


def give(session: Session, messages: Sequence[Message]) -> None:
    """Stores the credits in the database transaction that removes their messages from the inbox."""
    session.add_all(Credit(order_id=message.text) for message in messages)
