"""Sends the ten messages with both listeners, and prints the delivered messages. Runs for two rounds of check-backs."""

import asyncio
import os

from sqlalchemy import create_engine

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    MessageExt,
    PushConsumer,
    TransactionListener,
    TransactionProducer,
)
from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.official_sample.sample import CountingListener, send_ten
from tutorials.recipes.official_sample.stored import Base, StoringListener, conclude_all

TWO_ROUNDS_S = float(os.environ.get("WATCH_S", "130"))


def printing(topic: str) -> PushConsumer:
    """Returns a consumer that prints the topic's messages."""
    consumer = PushConsumer(f"readers-of-{topic}", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)

    @consumer.consumes(topic)
    async def read(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            print(f"{topic} delivers {message.text} [{message.tags}]", flush=True)
        return ConsumeStatus.CONSUME_SUCCESS

    return consumer


async def play(topic: str, listener: TransactionListener) -> None:
    """Sends the ten messages to the topic, and answers check-backs."""
    async with TransactionProducer(f"senders-to-{topic}", listener) as producer, printing(topic):
        await producer.create_topic(topic)
        await send_ten(producer, topic)
        print(f"{topic}: ten half messages are sent", flush=True)
        await asyncio.sleep(TWO_ROUNDS_S)


async def main() -> None:
    """Runs both listeners at the same time."""
    engine = create_engine(os.environ.get("DATABASE_URL", "sqlite:///official_sample.db"))
    Base.metadata.create_all(engine)
    async with asyncio.TaskGroup() as both:
        both.create_task(play("TopicTest1234", CountingListener()))
        both.create_task(play("TopicTestStored", StoringListener(engine)))
        await asyncio.sleep(TWO_ROUNDS_S / 4)
        print(f"{conclude_all(engine)} waiting messages are decided in the database", flush=True)


if __name__ == "__main__":
    with until_interrupted():
        asyncio.run(main())
