"""The FastAPI application. The producer and the consumer run on the application's event loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from rocketmq_broker.client import LocalTransactionState, Message, TransactionProducer
from tutorials.recipes.debit_ships.inventory import Shipment, shipping
from tutorials.recipes.debit_ships.payments import TOPIC, Account, Base, DebitListener, Order

STATUS = {LocalTransactionState.ROLLBACK_MESSAGE: 402, LocalTransactionState.UNKNOWN: 503}  # a check-back will follow


def create_app(folder: str) -> FastAPI:
    """Returns the application, with both databases in `folder`. Uses the environment variable NAMESRV_ADDR."""
    databases = [create_async_engine(f"sqlite+aiosqlite:///{folder}/{name}.db") for name in ("payments", "inventory")]
    payments, inventory = databases
    producer = TransactionProducer("debits", DebitListener(payments))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        for engine in databases:
            async with engine.begin() as connection:
                await connection.run_sync(Base.metadata.create_all)
        async with producer, shipping(inventory):
            yield
        for engine in databases:
            await engine.dispose()

    app = FastAPI(lifespan=lifespan)

    @app.put("/accounts/{customer}/{balance}")
    async def open_account(customer: str, balance: int) -> None:
        async with AsyncSession(payments) as session, session.begin():
            await session.merge(Account(customer=customer, balance=balance))

    @app.post("/orders", status_code=201)
    async def buy(order: Order) -> Order:
        message = Message.of(TOPIC, order.model_dump_json(), keys=[order.order_id])
        state = (await producer.send_message_in_transaction(message, order)).local_transaction_state
        if state in STATUS:
            raise HTTPException(STATUS[state], state.name)
        return order

    @app.get("/shipments/{order_id}")
    async def shipment(order_id: str) -> str:
        async with AsyncSession(inventory) as session:
            if (found := await session.get(Shipment, order_id)) is None:
                raise HTTPException(404, "not shipped")
            return f"on its way to {found.customer}"

    return app
