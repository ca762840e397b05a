"""Tests that a message that a consumer returns is redelivered through the group's retry topic."""

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, Message, MessageExt
from rocketmq_broker.testing import RocketMQ

Seen = list[tuple[str, str, int]]


def seen_of(messages: list[MessageExt]) -> Seen:
    return [(message.topic, message.body.decode(), message.reconsume_times) for message in messages]


async def send(rocketmq: RocketMQ, *bodies: bytes) -> None:
    producer = await rocketmq.producer("producers")
    await producer.create_topic("orders", 1)
    for body in bodies:
        await producer.send(Message.of("orders", body))


async def test_what_one_member_gave_back_comes_to_the_next_one_after_its_end(rocketmq: RocketMQ) -> None:
    async def fails(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        return ConsumeStatus.RECONSUME_LATER

    await send(rocketmq, b"1", b"2")
    first = await rocketmq.consumer("credits", "orders", fails)
    await rocketmq.advance(seconds=1)
    await first.shutdown()
    await rocketmq.advance(minutes=5)
    seen: Seen = []

    async def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        seen.extend(seen_of(messages))
        return ConsumeStatus.CONSUME_SUCCESS

    await rocketmq.consumer("credits", "orders", listener)
    await rocketmq.advance(minutes=1)
    assert sorted(seen) == [("orders", "1", 1), ("orders", "2", 1)]


async def test_what_gives_way_comes_again_after_its_delay_and_spends_no_redelivery(rocketmq: RocketMQ) -> None:
    """A message can be postponed any number of times, even if no redelivery is left."""
    seen: Seen = []

    async def listener(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        seen.extend(seen_of(messages))
        if len(seen) <= 3:
            context.give_way(messages[0], 5)
        return ConsumeStatus.CONSUME_SUCCESS

    await send(rocketmq, b"1")
    await rocketmq.consumer("credits", "orders", listener, max_reconsume_times=0)
    await rocketmq.advance(seconds=50)
    assert seen == [("orders", "1", 0)]
    await rocketmq.advance(minutes=10)
    assert seen == [("orders", "1", 0)] * 4
