"""Tests that a consumer receives the first message of a new topic within a second."""

import asyncio

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Message, MessageExt, Producer, PushConsumer
from rocketmq_broker.testing import RocketMQ


async def test_the_first_message_of_a_new_topic_is_consumed_within_a_second_of_its_send(rocketmq: RocketMQ) -> None:
    consumed: list[str] = []

    async def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        consumed.extend(message.text for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = PushConsumer("credits", namesrv_addr=rocketmq.namesrv_addr)
    topics = ("orders", "payments", "refunds")
    for topic in topics:
        consumer.subscribe(topic)
    consumer.register_message_listener(listener)
    async with consumer, Producer("shop", namesrv_addr=rocketmq.namesrv_addr) as producer:
        await rocketmq.advance(minutes=10)  # topics that are missing for long are asked for every 10 s
        for topic in topics:
            await rocketmq.advance(seconds=2.7)
            await producer.send(Message.of(topic, topic))
            began = asyncio.get_running_loop().time()
            while topic not in consumed:
                await rocketmq.advance(seconds=0.1)
            assert asyncio.get_running_loop().time() - began < 1
