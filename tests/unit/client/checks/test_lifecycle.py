"""Calls at the wrong moment, or from another event loop than the one that a client lives on."""

import asyncio

import pytest

from broker.client import EventLoopThread, NotRunning
from broker.client.checks.lifecycle import Lifecycle


@pytest.fixture
def client() -> Lifecycle:
    return Lifecycle("producer p")


async def test_before_the_start_it_does_not_run(client: Lifecycle) -> None:
    with pytest.raises(NotRunning, match="producer p is not running: start it first"):
        client.require_running()
    client.require_new()


async def test_it_is_started_once(client: Lifecycle) -> None:
    client.started()
    client.require_running()
    with pytest.raises(NotRunning, match="producer p was started before: start it once"):
        client.require_new()


async def test_after_the_shutdown_it_neither_runs_nor_starts(client: Lifecycle) -> None:
    client.started()
    assert client.stop()
    with pytest.raises(NotRunning, match="not running: it was shut down"):
        client.require_running()
    with pytest.raises(NotRunning, match="was shut down and cannot be started again: make a new one"):
        client.require_new()


async def test_a_shutdown_before_the_start_stops_nothing(client: Lifecycle) -> None:
    assert not client.stop()
    with pytest.raises(NotRunning, match="cannot be started again"):
        client.require_new()


def test_a_client_started_in_one_asyncio_run_is_not_used_in_another(client: Lifecycle) -> None:
    async def start() -> None:
        client.started()

    async def use() -> None:
        client.require_running()

    async def stop() -> None:
        client.stop()

    asyncio.run(start())
    for wrong in (use, stop):
        with pytest.raises(NotRunning, match=r"use it within one asyncio.run\(\), or hand its coroutines to one EventLoopThread"):
            asyncio.run(wrong())
    with pytest.raises(NotRunning, match="this call comes from elsewhere"):
        client.require_running()
    with pytest.raises(NotRunning, match="this call comes from elsewhere"):
        client.change(lambda: None)


async def test_a_change_is_made_at_once_before_the_start_and_on_the_event_loop(client: Lifecycle) -> None:
    made: list[str] = []
    client.change(lambda: made.append("before"))
    client.started()
    client.change(lambda: made.append("running"))
    assert made == ["before", "running"]
    client.stop()
    with pytest.raises(NotRunning, match="was shut down: nothing can be changed any more"):
        client.change(lambda: made.append("after"))


def test_a_change_from_another_thread_is_made_on_the_event_loop(client: Lifecycle) -> None:
    made: list[asyncio.AbstractEventLoop] = []

    async def start() -> asyncio.AbstractEventLoop:
        client.started()
        return asyncio.get_running_loop()

    async def nothing() -> None: ...

    with EventLoopThread() as loop:
        its_loop = loop.run(start())
        client.change(lambda: made.append(asyncio.get_running_loop()))
        loop.run(nothing())
    assert made == [its_loop]
