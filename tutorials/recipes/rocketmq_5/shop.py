"""The shop: half message, order, decision and check-back with Apache's client of RocketMQ 5."""

import logging
from typing import Any

import rocketmq
from sqlalchemy import Engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from rocketmq_broker.client import LocalTransactionState, Message
from rocketmq_broker.databases.sqlalchemy import add_tables, barrier, settle

logger = logging.getLogger(__name__)
TOPIC = "orders-by-rocketmq-5"


class Base(DeclarativeBase):
    """The base class of the order database's tables."""


class Order(Base):
    """An order that was placed and not rolled back."""

    __tablename__ = "orders"
    order_id: Mapped[str] = mapped_column(primary_key=True)


add_tables(Base.metadata)


def converted(message: Any) -> Message:
    """Converts a sent or received message of Apache's client, for `barrier`, `settle` and `Inbox`."""
    return Message(topic=message.topic, body=message.body, properties={"UNIQ_KEY": message.message_id})


class OrderChecker(rocketmq.TransactionChecker):  # type: ignore[misc]
    """Decides check-backs according to the order database. Apache's client calls `check` in another thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def check(self, half: Any) -> rocketmq.TransactionResolution:
        """Returns the stored outcome. Without one, stores and returns ROLLBACK, so that the order can no longer commit."""
        with Session(self._engine) as session:
            is_stored = settle(session, converted(half)) is LocalTransactionState.COMMIT_MESSAGE
        return rocketmq.TransactionResolution.COMMIT if is_stored else rocketmq.TransactionResolution.ROLLBACK


def started_producer(endpoints: str, engine: Engine) -> Any:
    """Returns a running producer whose checker responds to check-backs. The topic serves as the producer group."""
    configuration = rocketmq.ClientConfiguration(endpoints, rocketmq.Credentials())
    producer = rocketmq.Producer(configuration, (TOPIC,), checker=OrderChecker(engine))
    producer.startup()
    return producer


def place(producer: Any, engine: Engine, order_id: str) -> None:
    """Sends the half message, stores the order, and sends COMMIT. If COMMIT is lost, the broker checks back."""
    message = rocketmq.Message()
    message.topic, message.body, message.keys = TOPIC, order_id.encode(), order_id
    transaction = producer.begin_transaction()
    message.message_id = producer.send(message, transaction).message_id
    with Session(engine) as session, barrier(session, converted(message)):
        session.add(Order(order_id=order_id))
    try:
        transaction.commit()
    except Exception as error:  # the client's errors have no common base class
        logger.warning("COMMIT of order %s did not arrive, so the broker will check back: %s", order_id, error)
