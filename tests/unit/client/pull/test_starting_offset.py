"""Tests the starting offset of a group that has committed none. An error is never treated as a missing offset."""

from typing import cast

import pytest

from rocketmq_broker.client import BrokerUnreachable, ConsumeFromWhere, MessageQueue
from rocketmq_broker.client.pull.offset_store import OffsetStore
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.client.pull.starting_offset import StartingOffset
from tests.unit.client.messages import QUEUE

RETRY_QUEUE = MessageQueue("%RETRY%group", "broker-a", 0)
FIRST, LAST, BY_TIME = 10, 90, 50


class Broker:
    def __init__(self, kept: int | None = None, *, is_up: bool = True) -> None:
        self.kept = kept
        self.is_up = is_up
        self.searched: list[int] = []

    async def read(self, queue: MessageQueue) -> int | None:
        if not self.is_up:
            raise BrokerUnreachable("the broker is down")
        return self.kept

    async def min_offset(self, queue: MessageQueue) -> int:
        return FIRST

    async def max_offset(self, queue: MessageQueue) -> int:
        return LAST

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        self.searched.append(timestamp_ms)
        return BY_TIME


async def found(where: ConsumeFromWhere, broker: Broker, queue: MessageQueue = QUEUE) -> int:
    return await StartingOffset(where, 1234).find(queue, cast(OffsetStore, broker), cast(QueueRequests, broker))


@pytest.mark.parametrize("where", list(ConsumeFromWhere))
@pytest.mark.parametrize("kept", [0, 42])
async def test_an_offset_that_is_kept_counts_whatever_the_setting(where: ConsumeFromWhere, kept: int) -> None:
    assert await found(where, Broker(kept)) == kept


@pytest.mark.parametrize(
    ("where", "offset"),
    [
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, FIRST),
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, LAST),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, BY_TIME),
    ],
)
async def test_without_one_the_setting_says_where(where: ConsumeFromWhere, offset: int) -> None:
    assert await found(where, Broker()) == offset


async def test_the_time_asked_for_is_the_settings() -> None:
    broker = Broker()
    await found(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, broker)
    assert broker.searched == [1234]


@pytest.mark.parametrize("where", list(ConsumeFromWhere))
async def test_what_waits_in_a_retry_topic_is_never_skipped(where: ConsumeFromWhere) -> None:
    assert await found(where, Broker(), RETRY_QUEUE) == FIRST


async def test_while_nobody_knows_the_queue_is_not_begun() -> None:
    with pytest.raises(BrokerUnreachable):
        await found(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, Broker(is_up=False))
