"""Tests of calls before the start or after the shutdown, or from an event loop other than the client's."""

import asyncio

import pytest

from rocketmq_broker.client import EventLoopThread, NotRunning
from rocketmq_broker.client.checks.lifecycle import Lifecycle


@pytest.fixture
def client() -> Lifecycle[str]:
    return Lifecycle("producer p")


async def test_before_the_start_it_does_not_run(client: Lifecycle[str]) -> None:
    with pytest.raises(NotRunning, match="producer p is not running: start it first"):
        client.running()
    client.require_new()


async def test_it_is_started_once(client: Lifecycle[str]) -> None:
    client.started("its parts")
    assert client.running() == client.running_parts == "its parts"
    with pytest.raises(NotRunning, match="producer p is already started: start it once"):
        client.require_new()


async def test_after_the_shutdown_it_neither_runs_nor_starts(client: Lifecycle[str]) -> None:
    client.started("its parts")
    assert client.stop() == "its parts"
    assert client.stop() is None
    assert client.running_parts is None
    with pytest.raises(NotRunning, match="not running: it was shut down"):
        client.running()
    with pytest.raises(NotRunning, match="was shut down and cannot be started again: create a new one"):
        client.require_new()


async def test_a_shutdown_before_the_start_stops_nothing(client: Lifecycle[str]) -> None:
    assert client.stop() is None
    with pytest.raises(NotRunning, match="cannot be started again"):
        client.require_new()


def test_a_client_started_in_one_asyncio_run_is_not_used_in_another(client: Lifecycle[str]) -> None:
    async def start() -> None:
        client.started("its parts")

    async def use() -> None:
        client.running()

    async def stop() -> None:
        client.stop()

    asyncio.run(start())
    for wrong in (use, stop):
        with pytest.raises(NotRunning, match=r"use it within one asyncio.run\(\), or pass its coroutines to one EventLoopThread"):
            asyncio.run(wrong())
    with pytest.raises(NotRunning, match="was called from outside the event loop"):
        client.running()
    with pytest.raises(NotRunning, match="was called from outside the event loop"):
        client.change(lambda: None)


async def test_a_change_is_made_at_once_before_the_start_and_on_the_event_loop(client: Lifecycle[str]) -> None:
    made: list[str] = []
    client.change(lambda: made.append("before"))
    client.started("its parts")
    client.change(lambda: made.append("running"))
    assert made == ["before", "running"]
    client.stop()
    with pytest.raises(NotRunning, match="was shut down and can no longer be changed"):
        client.change(lambda: made.append("after"))


def test_a_change_from_another_thread_is_made_on_the_event_loop(client: Lifecycle[str]) -> None:
    made: list[asyncio.AbstractEventLoop] = []

    async def start() -> asyncio.AbstractEventLoop:
        client.started("its parts")
        return asyncio.get_running_loop()

    async def nothing() -> None: ...

    with EventLoopThread() as loop:
        its_loop = loop.run(start())
        client.change(lambda: made.append(asyncio.get_running_loop()))
        loop.run(nothing())
    assert made == [its_loop]


async def test_a_start_that_failed_may_be_tried_again(client: Lifecycle[str]) -> None:
    client.started("half of its parts")
    client.start_failed()
    client.require_new()
    with pytest.raises(NotRunning, match="start it first"):
        client.running()
    client.started("its parts")
    assert client.running() == "its parts"
