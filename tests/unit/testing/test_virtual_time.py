"""Tests an event loop whose time the test controls."""

import asyncio
import socket
import threading
import time
from asyncio.proactor_events import BaseProactorEventLoop

import pytest

from rocketmq_broker.testing import RocketMQ, virtual_time
from rocketmq_broker.testing.virtual_time import NothingHappens, VirtualTime, without_threads
from tests.passing_time import in_virtual_time
from tests.unit.testing.listeners import UNKNOWN, Transactions, order


def test_a_sleep_takes_time_of_the_test_alone() -> None:
    async def work(virtual: VirtualTime) -> float:
        await asyncio.sleep(1000)
        return virtual.elapsed_s

    began_s = time.monotonic()
    assert in_virtual_time(work) == pytest.approx(1000)
    assert time.monotonic() - began_s < 100


def test_timers_fire_after_half_a_year_as_well() -> None:
    async def work(virtual: VirtualTime) -> bool:
        await virtual.advance(200 * 86_400)
        due = asyncio.Event()
        asyncio.get_running_loop().call_at(virtual.loop_time(), due.set)
        for _ in range(100):
            await asyncio.sleep(0)
        return due.is_set()

    # A float of seconds is coarser than the loop's resolution there: what was due now never fired, and the loop turned for ever.
    assert in_virtual_time(work)


def test_timers_fire_in_their_order_each_at_its_time() -> None:
    async def work(virtual: VirtualTime) -> list[float]:
        fired: list[float] = []
        loop = asyncio.get_running_loop()
        for seconds in (30, 10, 20):
            loop.call_later(seconds, lambda: fired.append(round(virtual.elapsed_s)))
        await virtual.advance(25)
        return fired

    assert in_virtual_time(work) == [10, 20]


def test_all_that_follows_from_a_timer_happens_before_advance_returns() -> None:
    async def work(virtual: VirtualTime) -> list[str]:
        done: list[str] = []

        async def later() -> None:
            await asyncio.sleep(5)
            await asyncio.to_thread(done.append, "on a thread")
            done.append("after it")

        task = asyncio.create_task(later())
        await virtual.advance(5)
        assert task.done()
        return done

    assert in_virtual_time(work) == ["on a thread", "after it"]


def test_a_clock_of_the_world_and_that_of_the_loop_go_alike() -> None:
    async def work(virtual: VirtualTime) -> tuple[float, int, int]:
        loop = asyncio.get_running_loop()
        before = loop.time(), virtual.wall_ns(), virtual.steady_ns()
        await asyncio.sleep(60)
        return loop.time() - before[0], virtual.wall_ns() - before[1], virtual.steady_ns() - before[2]

    loop_s, wall_ns, steady_ns = in_virtual_time(work)
    assert wall_ns == steady_ns
    assert loop_s == pytest.approx(60) == pytest.approx(wall_ns / 1e9)


def test_time_goes_on_as_it_does_outside_while_a_socket_leads_there() -> None:
    async def work(virtual: VirtualTime) -> float:
        here, there = socket.socketpair()
        with here, there:
            asyncio.get_running_loop().add_reader(here, lambda: None)
            began_s = time.monotonic()
            await asyncio.sleep(0.05)
            asyncio.get_running_loop().remove_reader(here)
            return time.monotonic() - began_s

    assert in_virtual_time(work) >= 0.049


def test_time_can_be_advanced_although_a_socket_leads_out() -> None:
    async def work(virtual: VirtualTime) -> float:
        here, there = socket.socketpair()
        with here, there:
            asyncio.get_running_loop().add_reader(here, lambda: None)
            await virtual.advance(3600)
            asyncio.get_running_loop().remove_reader(here)
            return virtual.elapsed_s

    assert in_virtual_time(work) >= 3600


def test_who_waits_for_what_never_comes_learns_it() -> None:
    async def work(virtual: VirtualTime) -> None:
        async def tick() -> None:
            while True:  # noqa: ASYNC110 (it is what keeps time going)
                await asyncio.sleep(10)

        ticking = asyncio.create_task(tick())
        await asyncio.get_running_loop().create_future()
        ticking.cancel()

    with pytest.raises(NothingHappens, match="3600 s"):
        in_virtual_time(work)


def test_a_thread_that_waits_for_the_loops_time_is_not_waited_for() -> None:
    async def work(virtual: VirtualTime) -> float:
        async def held() -> None:
            virtual.work_begins()
            try:
                loop, over = asyncio.get_running_loop(), asyncio.Event()
                threading.Thread(
                    target=lambda: (virtual.pause(threading.Event().wait, 100), loop.call_soon_threadsafe(over.set))
                ).start()
                await over.wait()
            finally:
                virtual.work_ends()

        await held()
        return virtual.elapsed_s

    assert in_virtual_time(work) == pytest.approx(100, abs=5)


def test_a_thread_that_hangs_does_not_stop_time_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "MAX_WORK_S", 0.01)

    async def work(virtual: VirtualTime) -> float:
        goes_on = threading.Event()
        hanging = asyncio.create_task(asyncio.to_thread(goes_on.wait))
        await virtual.advance(60)
        goes_on.set()
        await hanging
        return virtual.elapsed_s

    assert in_virtual_time(work) >= 60


def test_time_goes_forward_only() -> None:
    async def work(virtual: VirtualTime) -> None:
        await virtual.advance(-1)

    with pytest.raises(ValueError, match="must not be negative"):
        in_virtual_time(work)


def test_what_begins_without_threads_is_done_on_the_loop() -> None:
    async def work(virtual: VirtualTime) -> tuple[int, int]:
        with without_threads():
            here = asyncio.create_task(asyncio.to_thread(threading.get_ident))
        return await here, await asyncio.to_thread(threading.get_ident)

    here, elsewhere = in_virtual_time(work)
    assert here == threading.get_ident() != elsewhere


async def test_a_loop_gets_its_own_time_back() -> None:
    loop = asyncio.get_running_loop()
    virtual = VirtualTime(0)
    give_back = virtual.adopt(loop)
    await asyncio.sleep(1000)
    give_back()
    assert abs(loop.time() - time.monotonic()) < 100


class PlayedProactor:
    """A replacement for the proactor of a ProactorEventLoop. Reads never complete, and waits are recorded."""

    def __init__(self) -> None:
        self._cache: dict[int, asyncio.Future[bytes]] = {}
        self.waited: list[float] = []
        """The time-outs of the waits."""

    def set_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def recv(self, sock: object, length: int) -> asyncio.Future[bytes]:
        return self._cache.setdefault(len(self._cache), self._loop.create_future())

    def select(self, timeout: float | None) -> list[asyncio.Future[bytes]]:
        assert timeout is not None
        if timeout > 0:
            self.waited.append(timeout)
        return []

    def close(self) -> None:
        self._cache.clear()


class WindowsLoop(BaseProactorEventLoop):
    """A ProactorEventLoop that reads from its own socket, so that other threads can wake it up, as on Windows."""

    def run_forever(self) -> None:
        self.call_soon(self._loop_self_reading)  # type: ignore[attr-defined]
        super().run_forever()


@pytest.mark.parametrize(("connections", "seconds", "is_waited_for"), [(0, 1000, False), (1, 0.001, True)])
def test_on_a_proactor_time_is_the_tests_until_another_file_is_open(
    connections: int, seconds: float, is_waited_for: bool
) -> None:
    proactor, virtual = PlayedProactor(), VirtualTime(0)

    async def work() -> float:
        give_back = virtual.adopt(asyncio.get_running_loop())
        for _ in range(connections):
            proactor.recv(None, 1)
        await asyncio.sleep(seconds)
        give_back()
        return virtual.elapsed_s

    loop = WindowsLoop(proactor)  # type: ignore[call-arg]
    elapsed_s = loop.run_until_complete(work())
    loop.close()
    assert bool(proactor.waited) == is_waited_for
    assert elapsed_s >= seconds


def test_a_loop_without_a_selector_is_refused() -> None:
    class Strange(asyncio.AbstractEventLoop):
        pass

    with pytest.raises(TypeError, match="requires asyncio's own event loop"):
        VirtualTime(0).adopt(Strange())


async def test_fifteen_minutes_of_check_backs_wake_the_event_loop_seldom() -> None:
    """Fifteen minutes of simulated time with a check-back each minute need fewer than 1600 turns of the event loop.

    The number of turns measures speed independently of the machine: a turn takes about 20 microseconds.
    """
    async with RocketMQ(seed=1) as rocketmq:
        producer = await rocketmq.transaction_producer("shops", Transactions(UNKNOWN, UNKNOWN))
        await producer.send_message_in_transaction(order())
        before = rocketmq.time.turns
        await rocketmq.advance(minutes=15)
        (pending,) = await rocketmq.pending()
        assert pending.checks == 15
        assert rocketmq.time.turns - before < 1600
