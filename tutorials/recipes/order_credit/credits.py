"""The credit service. A consumer passes each order to Celery, and acknowledges it after the task has stored the credit."""

import asyncio
import json
import os
from functools import cache

from celery import Celery
from sqlalchemy import Engine
from sqlalchemy.orm import registry
from sqlmodel import Field, Session, SQLModel, create_engine

from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, MessageExt, PushConsumer
from rocketmq_broker.databases.sqlalchemy import add_tables, once
from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.order_credit.orders import TOPIC

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
celery = Celery("credits", broker=REDIS_URL, backend=REDIS_URL)


class Base(SQLModel, registry=registry()):
    """The base class of the credit database's tables."""


class Credit(Base, table=True):
    """A customer's points for an order: one for each full unit of its currency."""

    credit_id: int | None = Field(default=None, primary_key=True)
    order_id: str
    customer: str
    points: int


add_tables(Base.metadata)


@cache
def engine() -> Engine:
    """Returns the database engine of this process. Each Celery worker is a fork and creates its own engine."""
    return create_engine(os.environ["CREDITS_URL"])


@celery.task(name="give_credit")
def give_credit(order_id: str, customer: str, total_cents: int) -> None:
    """Stores the credit of an order. Stores it only once, even if the task runs again."""
    with Session(engine()) as session, once(session, order_id, "credits") as is_first:
        if is_first:
            session.add(Credit(order_id=order_id, customer=customer, points=total_cents // 100))


def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    """Waits until the task has stored the credit. A time-out counts as RECONSUME_LATER: the message is redelivered."""
    for message in messages:
        give_credit.delay(**json.loads(message.body)).get(timeout=20)
    return ConsumeStatus.CONSUME_SUCCESS


async def consume() -> None:
    """Consumes messages until the process ends."""
    consumer = PushConsumer("order-credits", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.consumes(TOPIC)(listen)
    async with consumer:
        await asyncio.Event().wait()


if __name__ == "__main__":
    with until_interrupted():
        asyncio.run(consume())
