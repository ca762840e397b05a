"""Listener threads are bounded, take calls in bulk, and never block the event loop."""

import asyncio
import threading
from functools import partial

import pytest

from rocketmq_broker.client.push.listener_runners import ListenerNotRun, ListenerThreads, NoThreadLeft
from tests.waiting import until


async def test_results_and_errors_come_back_on_the_event_loop() -> None:
    threads = ListenerThreads("t", 4, None)
    assert await threads.run(lambda: threading.current_thread().name) == "t-1"
    with pytest.raises(KeyError):
        await threads.run(lambda: {}["nothing"])
    assert threads.unfinished == 0
    await threads.stop(1)


async def test_no_more_jobs_run_at_a_time_than_there_may_be_threads() -> None:
    threads = ListenerThreads("t", 3, None)
    gate, at_work, lock, peak = threading.Event(), 0, threading.Lock(), 0

    def job() -> None:
        nonlocal at_work, peak
        with lock:
            at_work += 1
            peak = max(peak, at_work)
        gate.wait(30)
        with lock:
            at_work -= 1

    jobs = [asyncio.ensure_future(threads.run(job)) for _ in range(10)]
    await until(lambda: at_work == 3)
    gate.set()
    await asyncio.gather(*jobs)
    assert peak == 3
    await threads.stop(1)


async def test_a_listener_that_ends_its_thread_does_not_end_the_others_turn() -> None:
    threads = ListenerThreads("t", 1, None)

    def leave() -> None:
        raise SystemExit

    with pytest.raises(RuntimeError, match="SystemExit"):
        await threads.run(leave)
    assert await threads.run(lambda: "next") == "next"
    await threads.stop(1)


async def test_stopping_waits_for_what_runs_and_drops_what_waits() -> None:
    threads = ListenerThreads("t", 1, None)
    began, gate = threading.Event(), threading.Event()
    outcomes: list[tuple[str, BaseException | None]] = []

    def first() -> None:
        began.set()
        gate.wait(30)

    threads.submit(first, lambda _, error: outcomes.append(("first", error)))
    threads.submit(lambda: None, lambda _, error: outcomes.append(("second", error)))
    await until(began.is_set)
    stopping = asyncio.ensure_future(threads.stop(5))
    await asyncio.sleep(0)
    gate.set()
    await stopping
    assert dict(outcomes)["first"] is None
    assert isinstance(dict(outcomes)["second"], ListenerNotRun)


async def test_a_listener_that_hangs_does_not_hold_up_the_shutdown() -> None:
    threads = ListenerThreads("t", 1, None)
    gate = threading.Event()
    threads.submit(partial(gate.wait, 5), lambda _, error: None)
    await threads.stop(0.05)
    gate.set()


def forbid_threads(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    start, started = threading.Thread.start, 0

    def start_a_few(thread: threading.Thread) -> None:
        nonlocal started
        started += 1
        if started > after:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_a_few)


async def test_jobs_wait_their_turn_when_no_further_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = ListenerThreads("t", 4, None)
    forbid_threads(monkeypatch, after=1)
    jobs = [asyncio.ensure_future(threads.run(lambda number=number: number)) for number in range(3)]  # type: ignore[misc]
    assert await asyncio.wait_for(asyncio.gather(*jobs), 30) == [0, 1, 2]
    await threads.stop(1)


async def test_a_job_for_which_no_thread_can_be_started_at_all_fails_and_a_later_one_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = ListenerThreads("t", 4, None)
    outcomes: list[BaseException | None] = []
    with monkeypatch.context() as without_threads:
        forbid_threads(without_threads, after=0)
        threads.submit(lambda: 1, lambda _, error: outcomes.append(error))
        await until(lambda: len(outcomes) == 1)
    assert isinstance(outcomes[0], NoThreadLeft)
    assert threads.unfinished == 0
    assert await asyncio.wait_for(threads.run(lambda: 2), 30) == 2
    await threads.stop(1)
