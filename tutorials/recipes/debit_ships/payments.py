"""The payments: a debit and its transaction's state get one local commit, on the event loop of the application."""

from typing import Any

from pydantic import BaseModel
from sqlalchemy import update
from sqlalchemy.exc import NoResultFound
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.databases.sqlalchemy import add_tables, barrier_async, settle_async

TOPIC = "debits"


class Base(DeclarativeBase):
    """The tables of both databases: each has them all, and uses its own."""


class Account(Base):
    """What a customer has."""

    __tablename__ = "accounts"
    customer: Mapped[str] = mapped_column(primary_key=True)
    balance: Mapped[int]


add_tables(Base.metadata)


class Order(BaseModel):
    """What a customer buys, as JSON in the request and in the message."""

    order_id: str
    customer: str
    price: int


class DebitListener:
    """The transaction listener, to copy. Both methods are tasks of the application's event loop."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def execute_local_transaction(self, message: Message, order: Any) -> LocalTransactionState:
        """Takes the price from the account. Of an account that has less, nothing is stored."""
        enough = Account.customer == order.customer, Account.balance >= order.price
        debit = update(Account).where(*enough).values(balance=Account.balance - order.price).returning(Account.balance)
        try:
            async with AsyncSession(self._engine) as session, barrier_async(session, message):
                (await session.execute(debit)).scalar_one()
        except NoResultFound:
            return LocalTransactionState.ROLLBACK_MESSAGE
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Answers by the transaction's row; without one it writes ROLLED_BACK first."""
        async with AsyncSession(self._engine) as session:
            return await settle_async(session, message)
