"""The ten messages with a listener to copy: it stores its answers in the database, together with the work."""

from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.databases import LocalOutcome
from rocketmq_broker.databases.sqlalchemy import add_tables, barrier, conclude, settle


class Base(DeclarativeBase):
    """The program's tables."""


class Greeting(Base):
    """The work of a local transaction."""

    __tablename__ = "greetings"
    transaction_id: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int]


add_tables(Base.metadata)


class StoringListener:
    """Decides by the message's number modulo 3: 0 waits, 1 is stored, 2 is refused by a rule."""

    def __init__(self, engine: Engine) -> None:
        """`engine` has the tables."""
        self._engine = engine

    def execute_local_transaction(self, message: Message, number: Any) -> LocalTransactionState:
        """Stores the greeting with the transaction's state. Refused messages do not reach the database."""
        if number % 3 == 2:
            return LocalTransactionState.ROLLBACK_MESSAGE
        state = LocalOutcome.COMMITTED if number % 3 else LocalOutcome.PENDING
        with Session(self._engine) as session, barrier(session, message, state):
            session.add(Greeting(transaction_id=message.transaction_id, number=number))
        return LocalTransactionState.COMMIT_MESSAGE if number % 3 else LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Answers from the transaction's row. Writes ROLLED_BACK first if the row is missing."""
        with Session(self._engine) as session:
            return settle(session, message)


def conclude_all(engine: Engine) -> int:
    """Decides all waiting messages, as a payment would, and returns their number. Their next check-back returns COMMIT."""
    with Session(engine) as session, session.begin():
        stored = session.scalars(select(Greeting.transaction_id)).all()
        return sum(conclude(session, transaction_id, LocalOutcome.COMMITTED) for transaction_id in stored)
