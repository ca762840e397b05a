"""The credit service. A consumer stores each message in the inbox; a Celery task then adds the credit."""

import asyncio
import json
import os
from collections.abc import Sequence
from functools import cache

from celery import Celery
from sqlalchemy import Engine
from sqlalchemy.orm import registry
from sqlmodel import Field, Session, SQLModel, create_engine

from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, Message, MessageExt, PushConsumer
from rocketmq_broker.databases.sqlalchemy import Inbox, add_inbox, add_tables
from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.order_credit.orders import TOPIC

celery = Celery("credits", broker=os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"))


class Base(SQLModel, registry=registry()):
    """The base class of the credit database's tables."""


class Credit(Base, table=True):
    """A customer's points for an order: one point for each full unit of the order's currency."""

    credit_id: int | None = Field(default=None, primary_key=True)
    order_id: str
    customer: str
    points: int


add_tables(Base.metadata)
add_inbox(Base.metadata)


@cache
def engine() -> Engine:
    """Returns the database engine of this process. Each Celery worker is a fork and creates its own engine."""
    return create_engine(os.environ["CREDITS_URL"])


inbox = Inbox(lambda: Session(engine()), "credits")


def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    """Stores the messages in the inbox, and acknowledges them."""
    inbox.put(messages)
    return ConsumeStatus.CONSUME_SUCCESS


def give(session: Session, messages: Sequence[Message]) -> None:
    """Stores the credits in the database transaction that removes their messages from the inbox."""
    for order in (json.loads(message.body) for message in messages):
        session.add(Credit(order_id=order["order_id"], customer=order["customer"], points=order["total_cents"] // 100))


@celery.task(name="give_credits", ignore_result=True)
def give_credits() -> None:
    """Credits the orders in the inbox, each message once. Lost or duplicate tasks do no harm: the next task does the work."""
    inbox.drain(give, once=True)


async def consume() -> None:
    """Consumes messages until the process ends, and starts tasks while messages wait in the inbox."""
    consumer = PushConsumer("order-credits", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.consumes(TOPIC)(listen)
    async with consumer:
        while True:
            await asyncio.sleep(0.2)
            if await asyncio.to_thread(inbox.is_due):
                await asyncio.to_thread(give_credits.delay)


if __name__ == "__main__":
    with until_interrupted():
        asyncio.run(consume())
