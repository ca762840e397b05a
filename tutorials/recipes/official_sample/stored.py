"""A transaction listener for the ten messages of Apache's sample.

Copy it to your program. It stores each greeting and the state of its transaction in one local commit.
"""

from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.databases import LocalOutcome
from rocketmq_broker.databases.sqlalchemy import add_tables, barrier, conclude, settle


class Base(DeclarativeBase):
    """The base class of the program's tables."""


class Greeting(Base):
    """A row that a local transaction stores."""

    __tablename__ = "greetings"
    transaction_id: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int]


add_tables(Base.metadata)


class StoringListener:
    """Decides by the message's number modulo 3: 0 is stored but undecided, 1 is committed, and 2 is rolled back."""

    def __init__(self, engine: Engine) -> None:
        """Creates the listener. The database of `engine` must have the tables."""
        self._engine = engine

    def execute_local_transaction(self, message: Message, number: Any) -> LocalTransactionState:
        """Stores the greeting with the state of its transaction. Rolls back a refused message without using the database."""
        if number % 3 == 2:
            return LocalTransactionState.ROLLBACK_MESSAGE
        state = LocalOutcome.COMMITTED if number % 3 else LocalOutcome.PENDING
        with Session(self._engine) as session, barrier(session, message, state):
            session.add(Greeting(transaction_id=message.transaction_id, number=number))
        return LocalTransactionState.COMMIT_MESSAGE if number % 3 else LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision stored with the transaction. Stores ROLLED_BACK first if no decision is stored."""
        with Session(self._engine) as session:
            return settle(session, message)


def conclude_all(engine: Engine) -> int:
    """Decides all undecided messages, as a payment would, and returns their number.

    The next check-back of each message returns COMMIT.
    """
    with Session(engine) as session, session.begin():
        stored = session.scalars(select(Greeting.transaction_id)).all()
        return sum(conclude(session, transaction_id, LocalOutcome.COMMITTED) for transaction_id in stored)
