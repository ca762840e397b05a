"""Tests async listeners: their concurrency, their results and errors, and what happens to them when the consumer stops."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from rocketmq_broker.client.push.listener_runners import (
    ListenerCancelled,
    ListenerNotRun,
    ListenerTasks,
    ListenerThreads,
    runner_of,
)
from rocketmq_broker.world import World
from tests.waiting import until

Outcome = tuple[object, BaseException | None]


class Gate:
    """Listeners that wait until the gate opens."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.running = 0
        self.max_concurrency = 0

    def listener(self, answer: object) -> Callable[[], Awaitable[object]]:
        async def listen() -> object:
            self.running += 1
            self.max_concurrency = max(self.max_concurrency, self.running)
            try:
                await self.opened.wait()
            finally:
                self.running -= 1
            return answer

        return listen


async def test_the_answer_of_an_async_listener_is_had() -> None:
    async def listen() -> int:
        return 7

    tasks = ListenerTasks("t", 1)
    assert await tasks.run(listen) == 7
    assert tasks.unfinished == 0
    await tasks.stop(1)


async def test_a_job_may_answer_without_anything_to_wait_for() -> None:
    tasks = ListenerTasks("t", 1)
    assert await tasks.run(lambda: 7) == 7
    await tasks.stop(1)


async def test_what_a_listener_raises_is_raised_where_its_answer_is_waited_for() -> None:
    async def listen() -> int:
        raise LookupError("no such order")

    tasks = ListenerTasks("t", 1)
    with pytest.raises(LookupError, match="no such order"):
        await tasks.run(listen)
    await tasks.stop(1)


async def test_no_more_run_than_may_and_all_have_their_turn() -> None:
    gate, tasks = Gate(), ListenerTasks("t", 2)
    answers = [asyncio.ensure_future(tasks.run(gate.listener(number))) for number in range(5)]
    await until(lambda: gate.running == 2)
    assert tasks.unfinished == 5
    gate.opened.set()
    assert await asyncio.wait_for(asyncio.gather(*answers), 30) == [0, 1, 2, 3, 4]
    assert gate.max_concurrency == 2
    await tasks.stop(1)


async def test_a_listener_that_is_cancelled_by_others_has_failed_and_the_next_runs() -> None:
    outcomes: list[Outcome] = []

    async def cancelled() -> None:
        raise asyncio.CancelledError

    tasks = ListenerTasks("t", 1)
    tasks.submit(cancelled, lambda *outcome: outcomes.append(outcome))
    tasks.submit(lambda: "next", lambda *outcome: outcomes.append(outcome))
    await until(lambda: len(outcomes) == 2)
    assert isinstance(outcomes[0][1], RuntimeError)
    assert outcomes[1] == ("next", None)
    await tasks.stop(1)


async def test_at_the_stop_what_waits_is_not_run_and_what_runs_may_end() -> None:
    gate, tasks, outcomes = Gate(), ListenerTasks("t", 1), list[Outcome]()
    for answer in ("running", "waiting"):
        tasks.submit(gate.listener(answer), lambda *outcome: outcomes.append(outcome))
    await until(lambda: gate.running == 1)
    stopping = asyncio.ensure_future(tasks.stop(30))
    await until(lambda: len(outcomes) == 1)
    assert isinstance(outcomes[0][1], ListenerNotRun)
    gate.opened.set()
    await asyncio.wait_for(stopping, 30)
    assert outcomes[1] == ("running", None)


async def test_at_the_stop_what_does_not_end_in_time_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    gate, tasks, outcomes = Gate(), ListenerTasks("checks", 1), list[Outcome]()
    tasks.submit(gate.listener("never"), lambda *outcome: outcomes.append(outcome))
    await until(lambda: gate.running == 1)
    with caplog.at_level(logging.WARNING):
        await tasks.stop(0)
    assert gate.running == 0
    assert isinstance(outcomes[0][1], ListenerCancelled)
    assert "checks: cancelled 1 async listeners that were running at shutdown" in caplog.text


@pytest.mark.parametrize("new_runner", [lambda: ListenerTasks("t", 1), lambda: ListenerThreads("t", 1, None)])
async def test_after_the_stop_nothing_runs(new_runner: Callable[[], ListenerTasks | ListenerThreads]) -> None:
    runner = new_runner()
    await runner.stop(1)
    await runner.stop(1)
    with pytest.raises(ListenerNotRun):
        await runner.run(lambda: 7)
    assert runner.unfinished == 0


async def test_an_answer_that_cannot_be_used_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def unusable(*outcome: object) -> None:
        raise ValueError("the result is invalid")

    tasks = ListenerTasks("t", 1)
    tasks.submit(lambda: 1, unusable)
    assert await tasks.run(lambda: 2) == 2
    assert "the result of a listener could not be processed" in caplog.text
    await tasks.stop(1)


async def test_the_kind_of_listener_says_what_runs_it() -> None:
    async def asynchronous() -> None: ...

    assert isinstance(runner_of(asynchronous, "t", 1, World()), ListenerTasks)
    assert isinstance(runner_of(lambda: None, "t", 1, World()), ListenerThreads)
    assert isinstance(runner_of(None, "t", 1, World()), ListenerThreads)
