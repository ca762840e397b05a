"""Tests which faults the relay handles, and which faults the consumers of its messages must handle."""

import runpy
from pathlib import Path

import pytest

from rocketmq_broker.client import ClientError, ConsumeContext, ConsumeStatus, MessageExt
from rocketmq_broker.testing import RocketMQ

Outbox = runpy.run_path(str(Path(__file__).with_name("relay.py")))["Outbox"]


async def test_orders_are_taken_while_the_broker_is_down_and_sent_when_it_is_back(rocketmq: RocketMQ) -> None:
    outbox = Outbox()
    producer = await rocketmq.producer("relay")
    await producer.create_topic("orders")
    await rocketmq.crash()
    outbox.place("order-1", "a book")
    with pytest.raises(ClientError):
        await outbox.relay(producer)
    await rocketmq.restart()
    assert await outbox.relay(producer) == 1
    assert [message.keys for message in await rocketmq.messages("orders")] == [("order-1",)]


async def test_a_relay_that_does_not_hear_the_answer_sends_twice(rocketmq: RocketMQ) -> None:
    outbox = Outbox()
    producer = await rocketmq.producer("relay")
    outbox.place("order-1", "a book")
    rocketmq.lose_next_answer()
    with pytest.raises(ClientError):
        await outbox.relay(producer)
    await outbox.relay(producer)
    assert [message.keys for message in await rocketmq.messages("orders")] == [("order-1",)] * 2


class Credits:
    """The exercise's solution: a consumer that credits each order once."""

    def __init__(self) -> None:
        self.of_orders: dict[str, str] = {}

    async def listen(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            self.of_orders.setdefault(message.keys[0], message.text)
        return ConsumeStatus.CONSUME_SUCCESS


async def test_an_idempotent_consumer_credits_an_order_once_whose_message_comes_twice(rocketmq: RocketMQ) -> None:
    outbox, credits = Outbox(), Credits()
    producer = await rocketmq.producer("relay")
    await producer.create_topic("orders")
    await rocketmq.consumer("credits", "orders", credits.listen)
    outbox.place("order-1", "a book")
    rocketmq.lose_next_answer()
    with pytest.raises(ClientError):
        await outbox.relay(producer)
    await outbox.relay(producer)
    await rocketmq.settle()
    assert credits.of_orders == {"order-1": "a book"}
