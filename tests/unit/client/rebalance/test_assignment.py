"""Tests the assigned queues after the pull loop of a queue has failed."""

import asyncio
from collections.abc import Iterable

import pytest

from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.rebalance import assignment as assignment_module
from rocketmq_broker.client.rebalance.assignment import Assignment
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.world import World
from tests.unit.client.messages import QUEUE, message
from tests.waiting import until


class Store:
    def __init__(self) -> None:
        self.kept: dict[MessageQueue, int] = {QUEUE: 7}
        self.stored: list[int] = []

    async def start(self, queue: MessageQueue) -> int:
        return self.kept[queue]

    def update(self, queue: MessageQueue, offset: int) -> None:
        self.kept[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        pass

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        self.stored += [self.kept[queue] for queue in queues]


class Consumption:
    async def may_begin(self, queue: MessageQueue) -> bool:
        return True

    async def quiesce(self, process_queue: ProcessQueue) -> None:
        pass

    async def release(self, process_queue: ProcessQueue) -> None:
        pass


async def test_a_queue_whose_pull_loop_failed_is_restarted_at_the_same_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment_module, "RESTART_DELAY_S", 0.0)
    store, begun, moved = Store(), [], asyncio.Event()

    async def pull(process_queue: ProcessQueue) -> None:
        begun.append(process_queue.next_offset)
        process_queue.put([message(7), message(8)], 9)
        if len(begun) == 1:
            process_queue.acknowledge([7])
            raise RuntimeError("can't start new thread")
        await asyncio.sleep(60)

    assignment = Assignment(Consumption(), store, store.start, pull, World())  # type: ignore[arg-type]
    assignment.on_moved = moved.set
    assert await assignment.take(QUEUE)
    await asyncio.wait_for(moved.wait(), 30)
    assert await assignment.take(QUEUE)
    await until(lambda: len(begun) == 2)
    assert begun == [7, 8]
    await assignment.stop_pulling()


async def test_where_a_queue_begins_is_stored_before_the_first_pull() -> None:
    store, begun = Store(), asyncio.Event()

    async def pull(process_queue: ProcessQueue) -> None:
        assert store.stored == [90]
        begun.set()

    async def at_the_end(queue: MessageQueue) -> int:
        return 90

    assignment = Assignment(Consumption(), store, at_the_end, pull, World())  # type: ignore[arg-type]
    assert await assignment.take(QUEUE)
    await asyncio.wait_for(begun.wait(), 30)
    await assignment.stop_pulling()


async def test_a_queue_that_is_given_up_is_left_at_its_oldest_open_message() -> None:
    store, pulled, released = Store(), asyncio.Event(), asyncio.Event()

    async def pull(process_queue: ProcessQueue) -> None:
        process_queue.put([message(7), message(8), message(9)], 10)
        process_queue.acknowledge([7, 9])
        pulled.set()
        await asyncio.sleep(60)

    class Released(Consumption):
        async def release(self, process_queue: ProcessQueue) -> None:
            released.set()

    assignment = Assignment(Released(), store, store.start, pull, World())  # type: ignore[arg-type]
    assert await assignment.take(QUEUE)
    await asyncio.wait_for(pulled.wait(), 30)
    assignment.give_up(QUEUE)
    await asyncio.wait_for(released.wait(), 30)
    assert store.kept == {QUEUE: 8}
    await assignment.stop_pulling()


async def test_a_queue_that_is_being_left_is_not_taken_until_its_last_call_has_ended() -> None:
    store, last_call, released = Store(), asyncio.Event(), asyncio.Event()

    class Busy(Consumption):
        async def quiesce(self, process_queue: ProcessQueue) -> None:
            await last_call.wait()

        async def release(self, process_queue: ProcessQueue) -> None:
            released.set()

    async def pull(process_queue: ProcessQueue) -> None:
        await asyncio.sleep(60)

    assignment = Assignment(Busy(), store, store.start, pull, World())  # type: ignore[arg-type]
    assert await assignment.take(QUEUE)
    assignment.give_up(QUEUE)
    assert not await assignment.take(QUEUE)
    last_call.set()
    await asyncio.wait_for(released.wait(), 30)
    await until(lambda: not assignment._leaving)
    assert await assignment.take(QUEUE)
    await assignment.stop_pulling()
