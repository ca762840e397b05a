"""Locks of an orderly consumer are held only as long as the broker granted them."""

from collections.abc import AsyncIterator, Iterable
from typing import cast

import pytest

from rocketmq_broker.client import BrokerUnreachable, MessageQueue
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.client.rebalance.queue_locks import HELD_FOR_S, OwnQueueLocks
from tests.passing_time import SteadyClock
from tests.unit.client.messages import QUEUE

OTHER = MessageQueue("orders", "broker-a", 1)
ELSEWHERE = MessageQueue("orders", "broker-b", 0)


class Brokers:
    """Brokers that grant every lock that no other client holds."""

    def __init__(self) -> None:
        self.taken: set[MessageQueue] = set()
        self.away: set[str] = set()
        self.unlocked: list[tuple[str, list[MessageQueue]]] = []

    async def lock_queues(
        self, group: str, client_id: str, broker_name: str, queues: Iterable[MessageQueue]
    ) -> set[MessageQueue]:
        if broker_name in self.away:
            raise BrokerUnreachable(f"broker {broker_name} is unreachable")
        return set(queues) - self.taken

    async def unlock_queues(self, group: str, client_id: str, broker_name: str, queues: Iterable[MessageQueue]) -> None:
        self.unlocked.append((broker_name, list(queues)))
        if broker_name in self.away:
            raise BrokerUnreachable(f"broker {broker_name} is unreachable")


@pytest.fixture
def clock() -> SteadyClock:
    return SteadyClock(100.0)


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
async def locks(brokers: Brokers, clock: SteadyClock) -> AsyncIterator[OwnQueueLocks]:
    locks = OwnQueueLocks("group", "client", cast(GroupRequests, brokers), clock)
    yield locks
    await locks.stop()


async def test_a_lock_that_is_had_is_held(locks: OwnQueueLocks) -> None:
    assert not locks.holds(QUEUE)
    assert await locks.acquire(QUEUE)
    assert locks.holds(QUEUE)
    assert not locks.holds(OTHER)


async def test_a_queue_that_another_has_is_not_had(locks: OwnQueueLocks, brokers: Brokers) -> None:
    brokers.taken.add(QUEUE)
    assert not await locks.acquire(QUEUE)
    brokers.taken.clear()
    assert await locks.acquire(QUEUE)


async def test_a_broker_that_is_away_gives_no_lock(locks: OwnQueueLocks, brokers: Brokers) -> None:
    brokers.away.add("broker-a")
    assert not await locks.acquire(QUEUE)
    await locks.stop()
    assert brokers.unlocked == []


async def test_a_lock_ends_here_before_it_ends_at_the_broker(locks: OwnQueueLocks, clock: SteadyClock) -> None:
    await locks.acquire(QUEUE)
    clock.now_s += HELD_FOR_S - 0.001
    assert locks.holds(QUEUE)
    clock.now_s += 0.001
    assert not locks.holds(QUEUE)


async def test_a_broker_that_is_away_for_a_moment_takes_nothing_away(
    locks: OwnQueueLocks, brokers: Brokers, clock: SteadyClock
) -> None:
    await locks.acquire(QUEUE)
    brokers.away.add("broker-a")
    assert await locks.acquire(QUEUE), "what was granted holds until its time is over"
    clock.now_s += HELD_FOR_S
    assert not await locks.acquire(QUEUE)


async def test_a_lock_that_the_broker_gave_to_another_is_lost_at_once(locks: OwnQueueLocks, brokers: Brokers) -> None:
    await locks.acquire(QUEUE)
    brokers.taken.add(QUEUE)
    assert not await locks.acquire(QUEUE)
    assert not locks.holds(QUEUE)


async def test_a_lock_given_back_is_not_held_any_more(locks: OwnQueueLocks, brokers: Brokers) -> None:
    for queue in (QUEUE, OTHER, ELSEWHERE):
        await locks.acquire(queue)
    await locks.release([QUEUE, ELSEWHERE])
    assert [locks.holds(queue) for queue in (QUEUE, OTHER, ELSEWHERE)] == [False, True, False]
    assert sorted(brokers.unlocked) == [("broker-a", [QUEUE]), ("broker-b", [ELSEWHERE])]


async def test_at_the_end_everything_is_given_back_even_if_a_broker_is_away(locks: OwnQueueLocks, brokers: Brokers) -> None:
    for queue in (QUEUE, ELSEWHERE):
        await locks.acquire(queue)
    brokers.away.add("broker-a")
    await locks.stop()
    assert {name for name, _ in brokers.unlocked} == {"broker-a", "broker-b"}
    assert not locks.holds(QUEUE)
