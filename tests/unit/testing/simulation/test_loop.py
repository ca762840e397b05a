"""Tests the event loop of a simulated world."""

import asyncio

import pytest

from rocketmq_broker.testing.simulation.loop import NothingLeft
from tests.unit.testing.simulation.processes import Alone


def test_time_passes_at_once_to_the_next_timer() -> None:
    world = Alone()
    world.run(asyncio.sleep(86_400))
    assert world.now_s == pytest.approx(86_400)


def test_timers_fire_in_the_order_of_their_time_and_then_of_their_making() -> None:
    world, fired = Alone(), []
    for name, delay_s in (("b", 2), ("a", 1), ("c", 3)):
        world.loop.call_later(delay_s, fired.append, name)
    world.run(asyncio.sleep(4))
    assert fired == ["a", "b", "c"]


def test_a_wait_for_something_that_cannot_come_ends_with_an_error() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(NothingLeft, match="no callback or timer is left"):
        Alone().run(wait())


def test_many_cancelled_timers_do_not_stay() -> None:
    world = Alone()

    async def cancel_many() -> int:
        for _ in range(10_000):
            world.loop.call_later(3600, print).cancel()
            await asyncio.sleep(0)
        return len(world.loop._scheduled)  # type: ignore[attr-defined]

    assert world.run(cancel_many()) < 1000


def test_work_for_an_executor_runs_without_a_thread_of_its_own() -> None:
    assert Alone().run(asyncio.to_thread(lambda: "done")) == "done"


def test_the_error_of_a_callback_is_told() -> None:
    world, told = Alone(), []
    world.loop.on_error = told.append
    world.loop.call_soon(lambda: 1 / 0)
    world.run(asyncio.sleep(1))
    assert [type(context["exception"]) for context in told] == [ZeroDivisionError]
