"""Tests of the number of queues in a topic that a producer's first message creates."""

from collections.abc import Awaitable, Callable

import pytest

from rocketmq_broker.app import Broker
from rocketmq_broker.client import Producer
from rocketmq_broker.message import Message
from tests.e2e.clients import PATIENT, running


@pytest.mark.parametrize(("asked_for", "broker_has", "made"), [(8, 8, 8), (4, 8, 4), (16, 8, 8), (8, 3, 3)])
async def test_it_has_as_many_as_the_producer_asks_for_and_no_more_than_the_broker_allows(
    start_broker: Callable[..., Awaitable[Broker]], asked_for: int, broker_has: int, made: int
) -> None:
    broker = await start_broker(default_topic_queue_nums=broker_has)
    producer = Producer("p", namesrv_addr=broker.name_servers[0], default_topic_queue_nums=asked_for, **PATIENT)
    async with running(producer):
        used = {(await producer.send(Message.of("orders", b"x"))).queue.queue_id for _ in range(3 * made)}
    assert used == set(range(made)), "a message to each queue, none of them refused"
