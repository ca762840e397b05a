"""Fixtures with a broker in memory and its pop service."""

from collections.abc import Awaitable, Callable

import pytest

from rocketmq_broker.client import Message, Producer
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.record import decode_record
from rocketmq_broker.server.popping import PoppedMessage, Popping
from rocketmq_broker.testing import RocketMQ

Pops = Callable[[], Popping]


@pytest.fixture
def pops(rocketmq: RocketMQ) -> Pops:
    """Returns a function that returns the pop service of the running broker."""

    def room() -> Popping:
        serving = rocketmq._broker._serving
        assert serving is not None
        return serving.popping

    return room


@pytest.fixture
async def producer(rocketmq: RocketMQ) -> Producer:
    producer = await rocketmq.producer("producers")
    await producer.create_topic("orders", 2)
    return producer


Send = Callable[..., Awaitable[None]]


@pytest.fixture
def send(rocketmq: RocketMQ, producer: Producer) -> Send:
    """Returns a function that sends messages to one queue."""

    async def send(*bodies: str, queue_id: int = 0, tags: str | None = None) -> None:
        queue = MessageQueue("orders", rocketmq._broker.identity.name, queue_id)
        for body in bodies:
            await producer.send(Message.of("orders", body, tags=tags), queue)

    return send


def bodies(messages: list[PoppedMessage]) -> list[str]:
    return [decode_record(message.record).body.decode() for message in messages]
