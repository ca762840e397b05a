"""Tests the synchronous facade: its results and their timing."""

import asyncio

import pytest

from rocketmq_broker.client import EventLoopThread, NotRunning


async def seven() -> int:
    return 7


def test_what_is_no_coroutine_is_told_how_to_make_one() -> None:
    with EventLoopThread() as loop:
        with pytest.raises(
            TypeError, match=r"expects a coroutine, not a function: call it, as in loop.run\(producer.start\(\)\)"
        ):
            loop.run(seven)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="expects a coroutine, not None"):
            loop.run(None)  # type: ignore[arg-type]
        assert loop.run(seven()) == 7


def test_it_runs_between_start_and_stop_only() -> None:
    loop = EventLoopThread()
    with pytest.raises(NotRunning, match="is not running: start it, or use `with EventLoopThread"):
        loop.run(seven())
    loop.start()
    with pytest.raises(NotRunning, match="is already started: start it once"):
        loop.start()
    loop.stop()
    with pytest.raises(NotRunning, match="is not running: it was stopped"):
        loop.run(seven())
    with pytest.raises(NotRunning, match="was stopped and cannot be started again: create a new one"):
        loop.start()


def test_a_time_out_says_how_long_was_waited() -> None:
    with EventLoopThread() as loop, pytest.raises(TimeoutError, match=r"no result within 0.01 s"):
        loop.run(asyncio.sleep(3600), timeout_s=0.01)


def test_a_time_out_of_the_coroutine_keeps_its_own_words() -> None:
    async def fail() -> None:
        raise TimeoutError("the coroutine timed out")

    with EventLoopThread() as loop, pytest.raises(TimeoutError, match="the coroutine timed out"):
        loop.run(fail(), timeout_s=60)
