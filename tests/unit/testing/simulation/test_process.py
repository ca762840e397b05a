"""Tests the effect of kill -9, SIGSTOP and a wrong clock on a simulated process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.threads import CannotWaitHere
from rocketmq_broker.world import current_world
from tests.unit.testing.simulation.processes import STARTS_MS, Alone


class Seen(list[str]):
    """A record of the code that ran in a process."""

    @contextmanager
    def to_the_end(self, name: str) -> Iterator[None]:
        try:
            yield
        finally:
            self.append(f"{name} cleans up")

    async def tick(self) -> None:
        with self.to_the_end("task"):
            while True:
                await asyncio.sleep(1)
                self.append("tick")

    def step(self, process: SimulatedProcess) -> None:
        with self.to_the_end("thread"):
            while True:
                process.world.sleep(1)
                self.append("step")


def test_code_in_a_process_finds_the_world_of_its_process() -> None:
    world = Alone()
    one, other = world.process("one"), world.process("other")

    async def names() -> list[str]:
        async def name() -> str:
            return current_world().host_name()

        return [await one.run(name()), await other.run(name()), await one.start_thread(lambda: current_world().host_name())]

    assert world.run(names()) == ["one", "other", "one"]


def test_nothing_of_a_killed_process_goes_on_and_nothing_cleans_up() -> None:
    world, seen = Alone(), Seen()
    process = world.process()

    async def play() -> list[str]:
        process.run(seen.tick())
        process.start_thread(seen.step, process)
        await asyncio.sleep(2.5)
        process.kill()
        await asyncio.sleep(60)
        return sorted(seen)

    assert world.run(play()) == ["step", "step", "tick", "tick"]


def test_those_who_must_know_of_a_death_are_told_once() -> None:
    world, told = Alone(), []
    process = world.process()
    process.on_death(lambda: told.append("died"))
    process.kill()
    process.kill()
    assert told == ["died"]


def test_a_stopped_process_does_everything_when_it_goes_on() -> None:
    world, seen = Alone(), Seen()
    process = world.process()

    async def play() -> tuple[int, int]:
        process.run(seen.tick())
        process.start_thread(seen.step, process)
        await asyncio.sleep(1.5)
        process.freeze()
        await asyncio.sleep(60)
        while_stopped = len(seen)
        process.thaw()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return while_stopped, len(seen)

    assert world.run(play()) == (2, 4)


def test_one_process_waits_while_another_works() -> None:
    world = Alone()
    one, other = world.process("one"), world.process("other")

    def nap(process: SimulatedProcess, seconds: float) -> float:
        process.world.sleep(seconds)
        return world.now_s

    async def play() -> list[float]:
        return list(await asyncio.gather(one.start_thread(nap, one, 30), other.start_thread(nap, other, 10)))

    assert [round(ended_s) for ended_s in world.run(play())] == [30, 10]


def test_a_thread_waits_for_a_coroutine() -> None:
    world = Alone()
    process = world.process()

    async def answer() -> str:
        await asyncio.sleep(5)
        return "answer"

    async def play() -> str:
        return await process.start_thread(lambda: process.threads.wait_for(answer()))

    assert world.run(play()) == "answer"


def test_a_thread_gets_the_error_of_a_coroutine_and_its_caller_that_of_the_thread() -> None:
    world = Alone()
    process = world.process()

    async def fail() -> None:
        raise LookupError("no such file")

    async def play() -> None:
        await process.start_thread(lambda: process.threads.wait_for(fail()))

    with pytest.raises(LookupError, match="no such file"):
        world.run(play())


def test_code_of_the_event_loop_cannot_wait_as_a_thread_does() -> None:
    world = Alone()
    process = world.process()

    async def wait() -> None:
        process.world.sleep(1)

    async def play() -> None:
        await process.run(wait())

    with pytest.raises(CannotWaitHere):
        world.run(play())


def test_a_lock_that_is_never_free_is_waited_for_until_the_timeout() -> None:
    world = Alone()
    process = world.process()

    async def play() -> bool:
        return await process.start_thread(process.threads.acquire, lambda: False, 5.0)

    assert not world.run(play())
    assert 5 <= world.now_s < 5.1


def test_the_same_seed_gives_the_same_chance_and_another_seed_another() -> None:
    one, again, other = (Alone(seed).process().world.new_uuid() for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize(("rate", "shown_s"), [(1, 10), (0, 0), (3, 30)])
def test_a_wall_clock_runs_at_its_rate(rate: float, shown_s: int) -> None:
    world = Alone()
    process = world.process()
    process.clock.run_at(rate)
    world.run(asyncio.sleep(10))
    assert process.world.wall_ms() - STARTS_MS == pytest.approx(shown_s * 1000, abs=1)


def test_a_wrong_wall_clock_tells_each_cause_that_somebody_reads_it() -> None:
    clock, read = Alone().process().clock, list[str]()
    clock.run_at(2, lambda: read.append("fast"))
    leap_back = clock.leap(5, lambda: read.append("leap"))
    clock.now_ns()
    clock.now_ns()
    leap_back()
    clock.now_ns()
    assert read == ["fast", "leap"]


def test_a_wrong_wall_clock_that_nobody_reads_before_its_end_tells_nothing() -> None:
    clock, read = Alone().process().clock, list[str]()
    end, leap_back = clock.run_at(2, lambda: read.append("fast")), clock.leap(5, lambda: read.append("leap"))
    end()
    leap_back()
    clock.now_ns()
    clock.run_at(0, lambda: read.append("stands"))
    clock.set_right()
    clock.now_ns()
    assert read == []


def test_what_is_wrong_with_a_wall_clock_ends_one_by_one() -> None:
    world = Alone()
    process = world.process()

    def wrong_by_s() -> float:
        return round(process.world.wall_ms() / 1000 - STARTS_MS / 1000 - world.now_s, 3)

    def pass_s(seconds: float) -> None:
        world.run(asyncio.sleep(seconds))

    leap_back, stand_end = process.clock.leap(60), process.clock.run_at(0)
    pass_s(10)
    assert wrong_by_s() == 50
    fast_end = process.clock.run_at(3)
    pass_s(10)
    assert wrong_by_s() == 70
    fast_end()
    pass_s(10)
    assert wrong_by_s() == 60
    stand_end()
    assert wrong_by_s() == 60
    leap_back()
    assert wrong_by_s() == 0
    stand_end()
    leap_back()
    assert wrong_by_s() == 0


def test_a_wall_clock_leaps_and_the_steady_clock_does_not() -> None:
    world = Alone()
    process = world.process()
    before_s = process.world.steady_s()
    process.clock.leap(-3600)
    assert (process.world.wall_ms(), process.world.steady_s()) == (STARTS_MS - 3_600_000, before_s)
