"""Tests which messages are acknowledged, returned to the broker, and redelivered."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus
from rocketmq_broker.client.listeners import MessageListener
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.push import concurrent_consumption, orderly_consumption
from rocketmq_broker.client.push.concurrent_consumption import ConcurrentConsumption
from rocketmq_broker.client.push.listener_runners import ListenerThreads
from rocketmq_broker.client.push.operators.consumer_statistics import ConsumerStatistics
from rocketmq_broker.client.push.orderly_consumption import OrderlyConsumption
from rocketmq_broker.message import MessageExt
from rocketmq_broker.world import World
from tests.unit.client.messages import QUEUE, message, offsets
from tests.waiting import until

SUCCESS, LATER = ConsumeStatus


class Return:
    """A broker that accepts returned messages. The first `failures` returns fail."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.taken: list[tuple[int, int]] = []
        self.dead: list[int] = []

    async def give_back(self, given: MessageExt, delay_level: int) -> bool:
        if self.failures:
            self.failures -= 1
            return False
        self.taken.append((given.queue_offset, delay_level))
        return True

    async def to_dead_letters(self, given: MessageExt) -> bool:
        self.dead.append(given.queue_offset)
        return True


def pulled(count: int) -> tuple[ProcessQueue, list[MessageExt]]:
    queue = ProcessQueue(QUEUE, 0, World())
    return queue, queue.put([message(offset) for offset in range(count)], count)


async def consumed(consumption: ConcurrentConsumption | OrderlyConsumption, count: int) -> ProcessQueue:
    """Waits until the consumption has finished with `count` messages, and stops it. Returns their queue."""
    queue, messages = pulled(count)
    consumption.arrived(queue, messages)
    await until(lambda: queue.message_count == 0)
    await consumption.stop(1)
    return queue


@pytest.fixture
async def threads() -> AsyncIterator[ListenerThreads]:
    running = ListenerThreads("listener", 4, None)
    yield running
    await running.stop(1)


def concurrent(
    threads: ListenerThreads,
    listener: MessageListener,
    returned: Return | None,
    *,
    batch_size: int = 1,
    progress: list[int] | None = None,
) -> ConcurrentConsumption:
    """Returns a consumption that appends committable offsets to `progress`."""
    made = [] if progress is None else progress
    return ConcurrentConsumption(
        listener,
        threads,
        lambda queue: made.append(queue.committable_offset),
        returned,  # type: ignore[arg-type]
        batch_size=batch_size,
        statistics=ConsumerStatistics(time.monotonic),
    )


async def test_what_is_consumed_is_acknowledged(threads: ListenerThreads) -> None:
    progress: list[int] = []
    await consumed(concurrent(threads, lambda _, __: SUCCESS, Return(), progress=progress), 5)
    assert progress[-1] == 5


async def test_the_listener_gets_batches_no_larger_than_asked_for(threads: ListenerThreads) -> None:
    batches: list[list[int]] = []
    await consumed(concurrent(threads, lambda batch, _: batches.append(offsets(batch)) or SUCCESS, Return(), batch_size=3), 7)
    assert sorted(batches) == [[0, 1, 2], [3, 4, 5], [6]]


async def test_what_comes_one_by_one_while_all_threads_are_busy_is_one_batch_afterwards(threads: ListenerThreads) -> None:
    may_end = threading.Event()
    batches: list[list[int]] = []

    def listener(batch: list[MessageExt], _: ConsumeContext) -> ConsumeStatus:
        batches.append(offsets(batch))
        may_end.wait(10)
        return SUCCESS

    queue, messages = pulled(9)
    made = concurrent(threads, listener, Return(), batch_size=32)
    for each in messages[:4]:
        made.arrived(queue, [each])
        await until(lambda each=each: [each.queue_offset] in batches)  # type: ignore[misc]
    for each in messages[4:]:
        made.arrived(queue, [each])
    may_end.set()
    await until(lambda: queue.message_count == 0)
    assert batches == [[0], [1], [2], [3], [4, 5, 6, 7, 8]]
    await made.stop(1)


async def test_a_message_of_a_gathered_batch_is_given_back_alone(threads: ListenerThreads) -> None:
    may_end = threading.Event()

    def listener(batch: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        may_end.wait(10)
        for each in batch:
            if each.queue_offset == 6:
                context.reconsume_later(each)
        return SUCCESS

    queue, messages = pulled(9)
    returned = Return()
    made = concurrent(threads, listener, returned, batch_size=32)
    for each in messages:
        made.arrived(queue, [each])
    may_end.set()
    await until(lambda: queue.message_count == 0)
    assert returned.taken == [(6, 0)]
    await made.stop(1)


@pytest.mark.parametrize("answer", [LATER, None, "SUCCESS", RuntimeError("database gone")])
async def test_anything_but_success_is_given_back(threads: ListenerThreads, answer: object) -> None:
    def listener(_: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        context.delay_level_when_next_consume = 2
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    returned = Return()
    await consumed(concurrent(threads, listener, returned), 1)
    assert returned.taken == [(0, 2)]


async def test_single_messages_of_a_batch_can_be_given_back(threads: ListenerThreads) -> None:
    def listener(batch: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        context.reconsume_later(batch[1], delay_level=4)
        context.reconsume_later(batch[2])
        return SUCCESS

    returned = Return()
    await consumed(concurrent(threads, listener, returned, batch_size=4), 4)
    assert sorted(returned.taken) == [(1, 4), (2, 0)]


async def test_what_nobody_takes_back_is_not_acknowledged_and_comes_again_here_without_spending_a_redelivery(
    threads: ListenerThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent_consumption, "LOCAL_RETRY_S", 0)
    attempts: list[int] = []
    held_at: list[int] = []
    queue, messages = pulled(1)

    def listener(batch: list[MessageExt], _: ConsumeContext) -> ConsumeStatus:
        attempts.append(batch[0].reconsume_times)
        held_at.append(queue.committable_offset)
        return SUCCESS if len(attempts) == 3 else LATER

    made = concurrent(threads, listener, Return(failures=2))
    made.arrived(queue, messages)
    await until(lambda: queue.message_count == 0)
    assert (attempts, held_at) == ([0, 0, 0], [0, 0, 0])
    await made.stop(1)


async def test_a_return_that_fails_with_an_unexpected_error_is_not_forgotten(
    threads: ListenerThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent_consumption, "LOCAL_RETRY_S", 0)

    class Failing(Return):
        async def give_back(self, given: MessageExt, delay_level: int) -> bool:
            if not await super().give_back(given, delay_level):
                raise RuntimeError("can't start new thread")
            return True

    returned = Failing(failures=2)
    await consumed(concurrent(threads, lambda _, __: LATER, returned), 1)
    assert returned.taken == [(0, 0)]


async def test_what_is_consumed_after_the_queue_was_lost_does_not_count(threads: ListenerThreads) -> None:
    queue, messages = pulled(1)
    returned = Return()

    def listener(_: list[MessageExt], __: ConsumeContext) -> ConsumeStatus:
        queue.drop()
        return LATER

    progress: list[int] = []
    made = concurrent(threads, listener, returned, progress=progress)
    made.arrived(queue, messages)
    await until(lambda: threads.unfinished == 0)
    assert (progress, returned.taken) == ([], [])
    await made.stop(1)


async def test_a_broadcasting_consumer_passes_over_what_failed(threads: ListenerThreads) -> None:
    await consumed(concurrent(threads, lambda _, __: LATER, None), 1)


@pytest.mark.parametrize("orderly_too", [False, True], ids=["concurrent", "orderly"])
async def test_messages_for_whose_listener_there_is_no_thread_come_again_here_and_spend_no_redelivery(
    threads: ListenerThreads, monkeypatch: pytest.MonkeyPatch, orderly_too: bool
) -> None:
    monkeypatch.setattr(concurrent_consumption, "LOCAL_RETRY_S", 0)
    monkeypatch.setattr(orderly_consumption, "_NO_THREAD_LEFT_S", 0)
    seen: list[tuple[int, int]] = []
    returned = Return()

    def listener(batch: list[MessageExt], _: ConsumeContext) -> ConsumeStatus:
        seen.extend((each.queue_offset, each.reconsume_times) for each in batch)
        return SUCCESS

    consumption: ConcurrentConsumption | OrderlyConsumption
    if orderly_too:
        consumption = orderly(threads, listener, returned=returned, limit=0)
    else:
        consumption = concurrent(threads, listener, returned, batch_size=3)
    refusals: list[int] = []
    start = threading.Thread.start

    def refuse_twice(thread: threading.Thread) -> None:
        if len(refusals) < 2:
            refusals.append(1)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_twice)
    await consumed(consumption, 3)
    assert (seen, returned.taken, returned.dead) == ([(0, 0), (1, 0), (2, 0)], [], [])


class Locks:
    def __init__(self) -> None:
        self.is_held = True
        self.released: list[object] = []

    def holds(self, _: object) -> bool:
        return self.is_held

    async def release(self, queues: list[object]) -> None:
        self.released += queues


def orderly(
    threads: ListenerThreads,
    listener: MessageListener,
    *,
    returned: Return | None = None,
    locks: Locks | None = None,
    limit: int | None = None,
    batch_size: int = 1,
) -> OrderlyConsumption:
    return OrderlyConsumption(
        listener,
        threads,
        lambda _: None,
        returned,  # type: ignore[arg-type]
        locks,  # type: ignore[arg-type]
        batch_size=batch_size,
        max_reconsume_times=limit,
        statistics=ConsumerStatistics(time.monotonic),
    )


async def test_in_order_the_next_message_waits_for_the_one_before(threads: ListenerThreads) -> None:
    seen: list[tuple[int, int]] = []

    def listener(batch: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        context.suspend_current_queue_time_ms = 10
        seen.append((batch[0].queue_offset, batch[0].reconsume_times))
        return LATER if batch[0].queue_offset == 1 and batch[0].reconsume_times < 2 else SUCCESS

    await consumed(orderly(threads, listener, locks=Locks()), 3)
    assert seen == [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)]


async def test_a_stopped_consumption_in_order_waits_for_no_lock(threads: ListenerThreads) -> None:
    queue, messages = pulled(1)
    locks = Locks()
    locks.is_held = False
    consumption = orderly(threads, lambda *_: SUCCESS, locks=locks)
    before = asyncio.all_tasks()
    consumption.arrived(queue, messages)
    assert asyncio.all_tasks() > before
    await consumption.stop(1)
    assert asyncio.all_tasks() == before


async def test_in_order_a_suspension_that_is_no_number_does_not_keep_the_queue_waiting_for_ever(
    threads: ListenerThreads, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []

    def listener(batch: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        context.suspend_current_queue_time_ms = "10"  # type: ignore[assignment]
        seen.append(batch[0].reconsume_times)
        return LATER if len(seen) == 1 else SUCCESS

    await consumed(orderly(threads, listener, locks=Locks()), 1)
    assert seen == [0, 1]
    assert "suspend_current_queue_time_ms must be a number of milliseconds, not '10'" in caplog.text


async def test_in_order_a_message_whose_attempts_are_used_up_goes_to_the_dead_letters(threads: ListenerThreads) -> None:
    def listener(batch: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        context.suspend_current_queue_time_ms = 10
        return LATER if batch[0].queue_offset == 0 else SUCCESS

    returned = Return()
    await consumed(orderly(threads, listener, returned=returned, locks=Locks(), limit=2), 2)
    assert returned.dead == [0]


async def test_a_queue_whose_lock_is_missing_is_not_consumed(threads: ListenerThreads) -> None:
    seen: list[int] = []
    locks = Locks()
    locks.is_held = False
    queue, messages = pulled(1)
    consumption = orderly(threads, lambda batch, _: seen.append(batch[0].queue_offset) or SUCCESS, locks=locks)
    consumption.arrived(queue, messages)
    await asyncio.sleep(0.01)
    assert seen == []
    await consumption.stop(1)


async def test_the_lock_stays_until_the_listener_has_ended_and_what_it_did_counts(threads: ListenerThreads) -> None:
    released_during_the_call: list[bool] = []
    locks = Locks()
    queue, messages = pulled(2)
    in_call = asyncio.Event()
    loop = asyncio.get_running_loop()

    def listener(_: list[MessageExt], __: ConsumeContext) -> ConsumeStatus:
        loop.call_soon_threadsafe(in_call.set)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.02), loop).result()
        released_during_the_call.append(bool(locks.released))
        return SUCCESS

    consumption = orderly(threads, listener, locks=locks)
    consumption.arrived(queue, messages)
    await in_call.wait()
    queue.drop()
    await consumption.quiesce(queue)
    assert locks.released == []
    await consumption.release(queue)
    assert released_during_the_call == [False]
    assert locks.released == [QUEUE]
    assert queue.committable_offset == 1
    await consumption.stop(1)


async def test_a_queue_is_not_quiet_while_the_message_after_the_next_is_in_hand(threads: ListenerThreads) -> None:
    queue, messages = pulled(3)
    began, gate = threading.Event(), threading.Event()

    def listener(batch: list[MessageExt], _: ConsumeContext) -> ConsumeStatus:
        if batch[0].queue_offset == 2:
            began.set()
            gate.wait(30)
        return SUCCESS

    consumption = orderly(threads, listener, locks=Locks())
    consumption.arrived(queue, messages)
    await until(began.is_set)
    queue.drop()
    quiet = asyncio.ensure_future(consumption.quiesce(queue))
    await asyncio.sleep(0.01)
    assert not quiet.done()
    gate.set()
    await quiet
    assert queue.committable_offset == 3
    await consumption.stop(1)
