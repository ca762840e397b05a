"""Tests the solution of the exercise, which finds pending transactions in the bytes of the commit log."""

import runpy
from pathlib import Path

from rocketmq_broker.client import Message
from rocketmq_broker.message import topics
from rocketmq_broker.testing import RocketMQ

chapter = runpy.run_path(str(Path(__file__).with_name("record.py")))


def pending_bodies(commit_log: bytes) -> list[bytes]:
    """Returns the bodies of half messages without an op message."""
    halves: dict[int, bytes] = {}
    for record in chapter["records"](commit_log):
        if record.topic == topics.HALF_TOPIC.encode():
            halves[record.queue_offset] = record.body
        elif record.topic == topics.OP_HALF_TOPIC.encode():
            for queue_offset in record.body.split(b","):
                halves.pop(int(queue_offset), None)
    return list(halves.values())


async def test_the_bytes_alone_tell_what_is_pending(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("shop", chapter["Undecided"]())
    await producer.send_message_in_transaction(Message.of("orders", "a book"))
    await rocketmq.advance(minutes=1)
    await producer.send_message_in_transaction(Message.of("orders", "a pen"))
    assert pending_bodies(rocketmq.commit_log()) == [b"a pen"]
    await rocketmq.crash()
    await rocketmq.restart()
    assert pending_bodies(rocketmq.commit_log()) == [b"a pen"]
