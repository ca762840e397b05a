"""Tests calls between the processes of the race: what the caller receives, and what the called process has done."""

from collections.abc import Coroutine
from typing import Any

import pytest

from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.world import Program, SimulatedWorld
from tutorials.race.calls import CallFailed, Calls, Service
from tutorials.race.order_database import ProcessDied


class TwoProcesses:
    """A world with a process that calls, and a process that serves and notes each request."""

    def __init__(self) -> None:
        self.world = SimulatedWorld(1)
        self.service = Service()
        self.noted: list[str] = []
        self.serving = self.world.program("credits", self.world.machine("credits"), self._serve)
        self.calling = self.world.program("orders", self.world.machine("orders"), self._begin)

    async def _serve(self, process: SimulatedProcess) -> None:
        self.called = Calls()
        await self.called.serve(self.service, self._work)

    async def _begin(self, process: SimulatedProcess) -> None:
        self.calls = Calls()

    async def _work(self, text: str) -> str:
        self.noted.append(text)
        if text == "error":
            raise ValueError("no such order")
        if text == "death":
            raise ProcessDied
        return text.upper()

    async def started(self, *programs: Program) -> None:
        for program in programs or (self.serving, self.calling):
            await program.start()

    async def call(self, text: str) -> str:
        assert self.calling.process is not None
        return await self.calling.process.run(self.calls.call(self.service, text))

    async def error(self, text: str) -> str:
        with pytest.raises(CallFailed) as raised:
            await self.call(text)
        return str(raised.value)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.world.run(work)
        assert self.world.errors == []


@pytest.fixture
def two() -> TwoProcesses:
    return TwoProcesses()


def test_a_call_returns_the_response_of_the_other_process(two: TwoProcesses) -> None:
    async def play() -> None:
        await two.started()
        assert [await two.call(text) for text in ("one", "two")] == ["ONE", "TWO"]

    two.run(play())


def test_an_error_of_the_work_is_an_error_of_the_call(two: TwoProcesses) -> None:
    async def play() -> None:
        await two.started()
        assert await two.error("error") == "no such order"
        assert await two.call("one") == "ONE"

    two.run(play())


def test_a_lost_response_fails_the_call_although_its_work_is_done(two: TwoProcesses) -> None:
    async def play() -> None:
        await two.started()
        two.service.answers_to_lose = 1
        assert (await two.error("one")).endswith("in time")
        assert two.noted == ["one"]
        assert await two.call("two") == "TWO"

    two.run(play())


def test_a_dead_process_does_not_respond(two: TwoProcesses) -> None:
    async def play() -> None:
        await two.started()
        assert (await two.error("death")).endswith("in time")

    two.run(play())


def test_a_call_fails_before_the_first_start_and_while_the_service_is_down(two: TwoProcesses) -> None:
    async def play() -> None:
        await two.started(two.calling)
        assert await two.error("one") == "the service has never started"
        await two.started(two.serving)
        two.serving.kill()
        await two.error("two")
        await two.serving.is_ready.wait()
        assert await two.call("three") == "THREE"
        assert two.noted == ["three"]

    two.run(play())


def test_a_process_that_ends_closes_its_port_and_its_connections(two: TwoProcesses) -> None:
    async def play() -> None:
        await two.started()
        assert await two.call("one") == "ONE"
        assert two.serving.process is not None
        await two.serving.process.run(two.called.end())
        await two.error("two")
        assert two.noted == ["one"]

    two.run(play())
