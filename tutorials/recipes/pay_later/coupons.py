"""The coupon service. A consumer passes each message to Celery, and acknowledges it after the task has stored the coupon."""

import asyncio
import json
import os
from functools import cache

from celery import Celery
from sqlalchemy import Engine
from sqlmodel import Field, Session, create_engine

from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, MessageExt, PushConsumer
from rocketmq_broker.databases.sqlalchemy import once
from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.pay_later.shop import TOPIC, Base

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
celery = Celery("coupons", broker=REDIS_URL, backend=REDIS_URL)
celery.conf.task_acks_late = True


class Coupon(Base, table=True):
    """A customer's coupon for a paid order."""

    order_id: str = Field(primary_key=True)
    customer: str


@cache
def engine() -> Engine:
    """Returns the database engine of this process. Each Celery worker is a fork and creates its own engine."""
    return create_engine(os.environ["COUPONS_URL"])


@celery.task(name="give_coupon")  # needs an explicit name, because the consumer runs this module as __main__
def give_coupon(order_id: str, customer: str) -> None:
    """Stores the coupon. Stores it only once, even if the task runs again."""
    with Session(engine()) as session, once(session, order_id, "coupons") as is_first:
        if is_first:
            session.add(Coupon(order_id=order_id, customer=customer))


def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    """Starts a task for each message, and waits for its end.

    If Redis loses the task, the wait times out. The timeout counts as RECONSUME_LATER, and the message is redelivered.
    """
    for message in messages:
        order = json.loads(message.body)
        give_coupon.delay(**order).get(timeout=20)
        print(f"a coupon for {order['customer']}: {order['order_id']} is paid", flush=True)
    return ConsumeStatus.CONSUME_SUCCESS


async def consume() -> None:
    """Consumes messages until the process ends."""
    consumer = PushConsumer("coupons", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.consumes(TOPIC)(listen)
    async with consumer:
        await asyncio.Event().wait()


if __name__ == "__main__":
    with until_interrupted():
        asyncio.run(consume())
