"""Tests reading ahead: the messages that a pull consumer returns, their order, and the offsets it may commit."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from rocketmq_broker.client import BrokerUnreachable, ConsumeFromWhere, MessageQueue
from rocketmq_broker.client.pull.pull_loop import PullSettings
from rocketmq_broker.client.pull.queue_requests import PullAnswer
from rocketmq_broker.client.pull.read_ahead import ReadAhead
from rocketmq_broker.client.pull.starting_offset import StartingOffset
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.world import World
from tests.unit.client.messages import QUEUE, message, offsets

OTHER = MessageQueue("orders", "broker-a", 1)
ALL = Subscription.parse("orders", "*", 1)


class Broker:
    """A broker with messages from `begin` up to `end` in each queue. A pull beyond the end waits."""

    def __init__(self, begin: int = 0, end: int = 5) -> None:
        self.begin = begin
        self.end = end
        self.committed: int | None = None
        self.asked: list[int] = []
        self.failures = 0

    async def committed_offset(self, group: str, queue: MessageQueue) -> int | None:
        if self.failures:
            self.failures -= 1
            raise BrokerUnreachable("the broker is down")
        return self.committed

    async def min_offset(self, queue: MessageQueue) -> int:
        return self.begin

    async def pull(self, group: str, queue: MessageQueue, offset: int, *, max_messages: int, **_: object) -> PullAnswer:
        self.asked.append(offset)
        if offset < self.begin:
            return PullAnswer([], self.begin, self.begin, self.end, True, 0)
        if offset >= self.end:
            await asyncio.Event().wait()
        until = min(offset + max_messages, self.end)
        return PullAnswer([message(at) for at in range(offset, until)], until, self.begin, self.end, False, 0)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
async def ahead(broker: Broker) -> AsyncIterator[ReadAhead]:
    start_at = StartingOffset(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, 0)
    reading = ReadAhead("group", broker, start_at, PullSettings(batch_size=2), World())  # type: ignore[arg-type]
    yield reading
    await reading.stop()


async def taken(ahead: ReadAhead, count: int) -> list[int]:
    """Waits for `count` messages. Returns their offsets."""
    found: list[int] = []
    while len(found) < count:
        found += offsets(ahead.take(count - len(found))) or ([] if await ahead.wait(30) else pytest.fail("nothing arrives"))
    return found


async def test_messages_are_given_out_in_order_and_no_more_than_asked_for(ahead: ReadAhead) -> None:
    ahead.read(QUEUE, ALL)
    assert await taken(ahead, 3) == [0, 1, 2]
    assert await taken(ahead, 2) == [3, 4]
    assert ahead.take(10) == []


async def test_only_what_was_given_out_may_be_committed(ahead: ReadAhead) -> None:
    ahead.read(QUEUE, ALL)
    assert ahead.committable_offsets == {}
    await taken(ahead, 3)
    assert ahead.committable_offsets == {QUEUE: 3}


async def test_it_begins_where_the_group_has_come_to(ahead: ReadAhead, broker: Broker) -> None:
    broker.committed = 3
    ahead.read(QUEUE, ALL)
    assert await taken(ahead, 2) == [3, 4]


async def test_a_broker_that_is_away_at_first_is_asked_again(
    ahead: ReadAhead, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocketmq_broker.client.pull.read_ahead.Backoff.next_pause_s", lambda _: 0.0)
    broker.failures = 2
    ahead.read(QUEUE, ALL)
    assert await taken(ahead, 1) == [0]


async def test_reading_a_queue_twice_changes_nothing(ahead: ReadAhead) -> None:
    ahead.read(QUEUE, ALL)
    ahead.read(QUEUE, Subscription.parse("orders", "paid", 2))
    assert ahead.subscriptions == [ALL]
    assert await taken(ahead, 5) == [0, 1, 2, 3, 4]


async def test_seeking_forgets_what_waits_and_goes_on_there(ahead: ReadAhead) -> None:
    ahead.read(QUEUE, ALL)
    assert await taken(ahead, 1) == [0]
    ahead.seek(QUEUE, 4)
    assert await taken(ahead, 1) == [4]
    assert ahead.committable_offsets == {QUEUE: 5}


async def test_a_queue_that_is_not_read_cannot_be_sought_in(ahead: ReadAhead) -> None:
    with pytest.raises(KeyError):
        ahead.seek(QUEUE, 1)


async def test_what_waits_of_a_queue_given_up_is_not_given_out(ahead: ReadAhead) -> None:
    ahead.read(QUEUE, ALL)
    assert await taken(ahead, 1) == [0]
    ahead.give_up(QUEUE)
    assert (ahead.take(10), ahead.queues, ahead.committable_offsets) == ([], set(), {})


async def test_an_offset_that_is_gone_is_left_for_the_oldest_there_is(ahead: ReadAhead, broker: Broker) -> None:
    broker.begin, broker.committed = 3, 1
    ahead.read(QUEUE, ALL)
    assert await taken(ahead, 2) == [3, 4]
    assert broker.asked[:2] == [1, 3]


async def test_several_queues_are_read_side_by_side(ahead: ReadAhead) -> None:
    ahead.read(QUEUE, ALL)
    ahead.read(OTHER, ALL)
    assert sorted(await taken(ahead, 10)) == sorted([*range(5), *range(5)])
    assert ahead.committable_offsets == {QUEUE: 5, OTHER: 5}


async def test_waiting_in_vain_says_so(ahead: ReadAhead) -> None:
    assert not await ahead.wait(0)


async def test_stopping_ends_a_wait_and_leaves_nothing_behind(ahead: ReadAhead) -> None:
    ahead.read(QUEUE, ALL)
    await taken(ahead, 1)
    waiting = asyncio.ensure_future(ahead.wait(3600))
    await asyncio.sleep(0)
    await ahead.stop()
    assert await asyncio.wait_for(waiting, 30)
    assert (ahead.take(10), ahead.queues) == ([], set())
