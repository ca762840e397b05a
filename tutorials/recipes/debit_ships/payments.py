"""The payment service, which stores a debit and the state of its transaction in one local commit."""

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
    """The base class of the tables. All tables are created in each database, which uses only some of them."""


class Account(Base):
    """The balance of a customer."""

    __tablename__ = "accounts"
    customer: Mapped[str] = mapped_column(primary_key=True)
    balance: Mapped[int]


add_tables(Base.metadata)


class Order(BaseModel):
    """A customer's order. The HTTP request and the message contain the same JSON."""

    order_id: str
    customer: str
    price: int


class DebitListener:
    """The transaction listener. Copy it to your program. Both methods run as tasks on the application's event loop."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def execute_local_transaction(self, message: Message, order: Any) -> LocalTransactionState:
        """Debits the account and returns COMMIT. If the balance is too low, stores nothing and returns ROLLBACK."""
        enough = Account.customer == order.customer, Account.balance >= order.price
        debit = update(Account).where(*enough).values(balance=Account.balance - order.price).returning(Account.balance)
        try:
            async with AsyncSession(self._engine) as session, barrier_async(session, message):
                (await session.execute(debit)).scalar_one()
        except NoResultFound:
            return LocalTransactionState.ROLLBACK_MESSAGE
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision stored with the transaction. Stores ROLLED_BACK first if no decision is stored."""
        async with AsyncSession(self._engine) as session:
            return await settle_async(session, message)
