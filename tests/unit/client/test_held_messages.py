"""A listener may hold its messages as long as it needs, but no longer than the queue is assigned to its consumer."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessagesWithdrawn
from rocketmq_broker.client.listeners import MessageListener
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.push.listener_runners import ListenerThreads
from rocketmq_broker.client.rebalance.assignment import Consumption
from rocketmq_broker.message import MessageExt
from rocketmq_broker.world import World
from tests.unit.client.messages import QUEUE, message
from tests.unit.client.push.test_consumption import Return, concurrent, orderly
from tests.waiting import until

LONG_S = 60
Make = Callable[[MessageListener], Consumption]


@pytest.fixture
async def threads() -> AsyncIterator[ListenerThreads]:
    running = ListenerThreads("listener", 1, None)
    yield running
    await running.stop(1)


@pytest.fixture
def returned() -> Return:
    return Return()


@pytest.fixture(params=["concurrent", "orderly"])
def make(request: pytest.FixtureRequest, threads: ListenerThreads, returned: Return) -> Make:
    if request.param == "concurrent":
        return lambda listener: concurrent(threads, listener, returned)
    return lambda listener: orderly(threads, listener, returned=returned, limit=0)


class Holder:
    """A listener that holds its messages until they are withdrawn or the test releases them."""

    def __init__(self) -> None:
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()
        self.was_withdrawn = False

    def __call__(self, _: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        self.has_begun.set()
        while not self.may_go_on.is_set():
            try:
                context.hold(0.001 if context.is_withdrawn else 0.01)
            except MessagesWithdrawn:
                self.was_withdrawn = True
                raise
        return ConsumeStatus.CONSUME_SUCCESS


def pulled() -> ProcessQueue:
    queue = ProcessQueue(QUEUE, 0, World())
    queue.put([message(0)], 1)
    return queue


async def test_what_is_held_is_neither_acknowledged_nor_given_back_until_the_listener_goes_on(
    make: Make, returned: Return
) -> None:
    queue, holder = pulled(), Holder()
    consumption = make(holder)
    consumption.arrived(queue, [message(0)])
    await until(holder.has_begun.is_set)
    assert (queue.message_count, queue.committable_offset, returned.taken) == (1, 0, [])
    holder.may_go_on.set()
    await until(lambda: queue.message_count == 0)
    assert (queue.committable_offset, returned.taken, returned.dead) == (1, [], [])
    await consumption.stop(1)


async def test_what_is_held_when_the_consumer_shuts_down_comes_again_and_no_redelivery_is_spent(
    make: Make, returned: Return
) -> None:
    queue, holder = pulled(), Holder()
    consumption = make(holder)
    consumption.arrived(queue, [message(0)])
    await until(holder.has_begun.is_set)
    queue.withdraw()
    await consumption.stop(LONG_S)
    assert holder.was_withdrawn
    assert (queue.committable_offset, returned.taken, returned.dead) == (0, [], [])


async def test_what_is_held_when_a_rebalance_takes_the_queue_away_is_left_to_its_next_owner(
    make: Make, threads: ListenerThreads, returned: Return
) -> None:
    queue, holder = pulled(), Holder()
    consumption = make(holder)
    consumption.arrived(queue, [message(0)])
    await until(holder.has_begun.is_set)
    queue.drop()
    async with asyncio.timeout(LONG_S):
        await consumption.quiesce(queue)
    await until(lambda: threads.unfinished == 0)
    assert (queue.committable_offset, returned.taken, returned.dead) == (0, [], [])
    await consumption.stop(1)


async def test_a_thread_that_held_a_lost_queue_is_free_for_the_next_one(make: Make, threads: ListenerThreads) -> None:
    lost, next_one, holder = pulled(), pulled(), Holder()
    consumption = make(holder)
    consumption.arrived(lost, [message(0)])
    await until(holder.has_begun.is_set)
    consumption.arrived(next_one, [message(0)])
    holder.has_begun.clear()
    lost.drop()
    await until(holder.has_begun.is_set)
    holder.may_go_on.set()
    await until(lambda: next_one.message_count == 0)
    await consumption.stop(1)


async def test_a_listener_that_says_withdrawn_of_messages_that_are_not_has_failed(
    threads: ListenerThreads, returned: Return
) -> None:
    def listener(_: list[MessageExt], __: ConsumeContext) -> ConsumeStatus:
        raise MessagesWithdrawn("the messages were withdrawn")

    queue = pulled()
    consumption = concurrent(threads, listener, returned)
    consumption.arrived(queue, [message(0)])
    await until(lambda: queue.message_count == 0)
    assert returned.taken == [(0, 0)]
    await consumption.stop(1)


def test_holding_waits_its_time_and_goes_on() -> None:
    context = ConsumeContext(QUEUE)
    context.hold(0)
    assert not context.is_withdrawn
    context.withdrawn.set()
    with pytest.raises(MessagesWithdrawn, match="orders"):
        context.hold(LONG_S)
