import asyncio
import logging

import pytest

from rocketmq_broker.remoting import tasks as tasks_module
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.tasks import Tasks


async def fail() -> None:
    raise ValueError("the task failed")


async def forever() -> None:
    await asyncio.Event().wait()


async def test_stop_ends_what_runs_and_what_has_not_begun() -> None:
    tasks = Tasks()
    running = tasks.start("running", forever())
    await asyncio.sleep(0)
    not_begun = tasks.start("not begun", forever())
    await tasks.stop()
    assert running.cancelled()
    assert not_begun.cancelled()


async def test_an_error_is_logged_by_name_and_ends_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks()
    other = tasks.start("other", forever())
    tasks.start("flush", fail())
    await asyncio.sleep(0.01)
    assert [(record.getMessage(), record.levelno) for record in caplog.records] == [("flush failed", logging.ERROR)]
    assert not other.done()
    await tasks.stop()


async def test_the_awaiter_of_a_task_gets_its_error_and_the_log_does_not(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="the task failed"):
        await Tasks().start("send", fail(), is_awaited=True)
    assert not caplog.records


async def test_settling_waits_for_the_quick_ones_but_not_for_ever() -> None:
    tasks = Tasks()
    quick, slow = tasks.start("quick", asyncio.sleep(0.01)), tasks.start("slow", forever())
    await tasks.settle(0.1)
    assert quick.done()
    assert not slow.done()
    await tasks.stop()


async def test_a_task_can_stop_its_owner_and_goes_on() -> None:
    tasks = Tasks()
    other = tasks.start("other", forever())

    async def stop_all() -> str:
        await tasks.stop()
        return "went on"

    assert await tasks.start("stopping", stop_all(), is_awaited=True) == "went on"
    assert other.cancelled()


async def test_a_task_that_heeds_no_cancellation_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks_module, "_END_WITHIN_S", 0.01)
    tasks, enough = Tasks(), asyncio.Event()

    async def stubborn() -> None:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue

    task = tasks.start("stubborn", stubborn())
    await asyncio.sleep(0)
    await tasks.stop()
    assert [record.getMessage() for record in caplog.records] == ["stubborn did not end within 0.01 s"]
    enough.set()
    await task


async def test_what_is_repeated_is_repeated_after_an_error_that_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    tasks, calls, thrice = Tasks(), 0, asyncio.Event()

    def action() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            thrice.set()
        raise OSError("the disk is full")

    tasks.every(0.001, "retention", action)
    await thrice.wait()
    await tasks.stop()
    assert [record.getMessage() for record in caplog.records] == ["retention failed, retrying every 0.001 s: the disk is full"]


async def test_what_is_due_is_called_after_the_time_it_asks_for_or_when_the_alarm_rings() -> None:
    tasks, alarm, waits = Tasks(), Alarm(), [0.001, None, 0.0, 3600.0]
    calls: asyncio.Queue[float | None] = asyncio.Queue()

    def action() -> float | None:
        calls.put_nowait(waits[0])
        return waits.pop(0) if waits else None

    tasks.when_due("delivery", action, alarm, rest_s=0)
    assert [await calls.get() for _ in range(2)] == [0.001, None]
    await asyncio.sleep(0.01)
    assert calls.empty()
    alarm.ring()
    assert [await calls.get() for _ in range(2)] == [0.0, 3600.0]
    await tasks.stop()


async def test_what_was_settled_while_a_task_rests_wakes_it_no_more() -> None:
    tasks, alarm, calls = Tasks(), Alarm(), 0

    def action() -> float | None:
        nonlocal calls
        calls += 1
        return 0.001

    tasks.when_due("check-back", action, alarm, rest_s=0, due_s=lambda: None)
    await asyncio.sleep(0.02)
    assert calls == 1
    alarm.ring()
    await asyncio.sleep(0.02)
    assert calls == 2
    await tasks.stop()


async def test_what_failed_is_tried_again_although_nothing_more_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks_module, "_AFTER_FAILURE_S", 0.001)
    tasks, calls, twice = Tasks(), 0, asyncio.Event()

    def action() -> float | None:
        nonlocal calls
        calls += 1
        if calls == 2:
            twice.set()
            return None
        raise OSError("the disk is full")

    tasks.when_due("check-back", action, Alarm(), rest_s=0, due_s=lambda: None)
    await asyncio.wait_for(twice.wait(), 10)
    await tasks.stop()


async def test_what_is_due_and_fails_is_tried_again_and_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks_module, "_AFTER_FAILURE_S", 0.001)
    tasks, calls, thrice = Tasks(), 0, asyncio.Event()

    def action() -> float | None:
        nonlocal calls
        calls += 1
        if calls == 3:
            thrice.set()
        raise OSError("the disk is full")

    tasks.when_due("delivery", action, Alarm(), rest_s=0)
    await thrice.wait()
    await tasks.stop()
    assert [record.getMessage() for record in caplog.records] == ["delivery failed, retrying every 0.001 s: the disk is full"]


async def test_what_is_called_again_and_again_ends_with_its_owner() -> None:
    tasks, called = Tasks(), asyncio.Event()
    calls: list[int] = []

    def action() -> None:
        calls.append(1)
        if len(calls) == 3:
            called.set()

    tasks.every(0.001, "counting", action)
    await asyncio.wait_for(called.wait(), 60)
    await tasks.stop()
    count = len(calls)
    await asyncio.sleep(0.02)
    assert len(calls) == count


async def test_an_action_may_stop_its_owner() -> None:
    tasks, stopped = Tasks(), asyncio.Event()
    stopping: list[asyncio.Task[None]] = []

    def action() -> None:
        stopping.append(asyncio.get_running_loop().create_task(tasks.stop()))
        stopping[-1].add_done_callback(lambda done: stopped.set())

    tasks.every(0.001, "stopping", action)
    await asyncio.wait_for(stopped.wait(), 60)
    await asyncio.sleep(0.01)
    assert len(stopping) == 1
