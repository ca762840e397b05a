"""Time for a test: it stands still while anything can happen without it, and then jumps to the next timer.

An event loop with virtual time runs as any other. Only where it would wait for its next timer, it first checks what else could
give it work:

    something is ready                        -> the loop goes on, and no time passes
    a thread works for the loop               -> the loop waits for it, and no time passes
    an answer is on its way from elsewhere    -> while time is advanced the loop waits for it, and no time passes
    the test waits, and nobody outside does   -> time passes to the next timer at once
    a socket leads out of the loop            -> the loop waits, and time passes as it does outside
    nobody waits for the loop                 -> it rests, and no time passes

`advance` always passes time at once. Timers fire in their order, each at its time. Nothing is skipped but, in long rests, upkeep
(`rest`).
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from rocketmq_broker.message.text.mistakes import kind_of

NS_IN_S: Final = 1_000_000_000
PATIENCE_S: Final = 1.0
"""Real time. A thread that works for longer is taken to wait for something that only the loop's time can bring."""
MAX_UNASKED_S: Final = 3600
"""The most time that passes unasked: a test that waits longer waits in vain."""
LOOK_OUTSIDE_EVERY: Final = 16
"""While time is advanced, sockets are looked at once in so many rounds: to ask the system costs more than a timer."""
_LOOP_BEGINS_S: Final = 1_000_000
_LOOK_AGAIN_S: Final = 0.002
_FINE_NS: Final = 30 * 86_400 * NS_IN_S
"""Until then a float of seconds is finer than the resolution of event loops, 1 ns."""


_without_threads: ContextVar[bool] = ContextVar("without_threads", default=False)


@contextmanager
def without_threads() -> Iterator[None]:
    """Runs work for threads on the event loop if its task or timer begins in the block: always in the same order."""
    token = _without_threads.set(True)
    try:
        yield
    finally:
        _without_threads.reset(token)


class NothingHappens(Exception):
    """A test waits for an event that passing time does not bring."""


class VirtualTime:
    """The clock of one event loop, and of all that runs on it. Reading it is safe on any thread; all else belongs to the loop."""

    def __init__(self, start_ms: int, *, is_awaited: Callable[[], bool] = lambda: True, is_flowing: bool = False) -> None:
        """`start_ms` is the initial date in milliseconds since the epoch; `is_awaited` returns whether the test waits now.

        Time that `is_flowing` passes as real time does, and faster only by `advance`.
        """
        self._is_flowing = is_flowing
        self._start_ns = start_ms * 1_000_000
        self._is_awaited = is_awaited
        self._elapsed_ns = 0
        self.turns = 0
        """The number of turns of the event loop."""
        self._unasked_ns = 0
        self._advancing = 0
        self._at_work = 0
        self._paused = 0
        self._hanging = 0
        self._settling: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_begins_s: float = _LOOP_BEGINS_S
        self.own_sockets: Callable[[], int] = lambda: 0
        """Returns the number of the loop's sockets without a peer yet: those that listen."""
        self.patience_s: Callable[[], float] = lambda: 0
        """Returns the real seconds to wait, before more time passes at once, for answers from outside."""

    # reading the time

    @property
    def elapsed_s(self) -> float:
        """Seconds since time began."""
        return self._elapsed_ns / NS_IN_S

    def wall_ns(self) -> int:
        """Returns nanoseconds since the epoch."""
        return self._start_ns + self._elapsed_ns

    def steady_ns(self) -> int:
        """Returns nanoseconds since a fixed moment."""
        return _LOOP_BEGINS_S * NS_IN_S + self._elapsed_ns

    def loop_time(self) -> float:
        """Returns seconds since a fixed moment, as event loops count them."""
        return self._loop_begins_s + self._elapsed_ns / NS_IN_S

    # moving the time

    async def advance(self, seconds: float) -> None:
        """Passes so much time at once. On return all timers due have fired, and nothing is left to do."""
        if not seconds >= 0:
            raise ValueError(f"time cannot go by {seconds} s: it goes forward only")
        self._unasked_ns = 0
        self._advancing += 1
        try:
            await asyncio.sleep(seconds)
            await self.settle()
        finally:
            self._advancing -= 1

    def leap(self, seconds: float) -> None:
        """Passes time without a turn of the loop, and fires nothing. Timers that are overdue then fire in the next turn."""
        self._pass(int(seconds * NS_IN_S))

    @property
    def is_at_work(self) -> bool:
        """Whether a thread works for the loop."""
        return self._at_work > 0

    async def settle(self) -> None:
        """Returns when everything left waits for time."""
        quiet: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settling.append(quiet)
        await quiet

    def wanted(self) -> None:
        """Notes that the test waits with a time-out: the time that passes is asked for."""
        self._unasked_ns = 0

    # threads that work for the loop

    def work_begins(self) -> None:
        """Notes that a thread begins to work for the loop."""
        self._at_work += 1

    def work_ends(self) -> None:
        """Notes that a thread's result is on the loop."""
        self._at_work -= 1
        self._hanging = min(self._hanging, self._at_work)

    def pause(self, wait: Callable[[float | None], bool], seconds: float | None) -> bool:
        """Lets a thread that works for the loop wait so long in virtual time; `wait` waits in real time, and may end earlier.

        Returns whether the awaited event came.
        """
        loop = self._loop
        if loop is None or seconds is None:
            return wait(seconds)
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._paused -= 1

        def begin() -> None:
            self._paused += 1
            loop.call_later(seconds, end)

        loop.call_soon_threadsafe(begin)
        while not ended:
            if wait(_LOOK_AGAIN_S):
                loop.call_soon_threadsafe(end)
                return True
        return wait(0)

    # the loop

    def new_loop(self) -> asyncio.SelectorEventLoop:
        """Returns an event loop that uses this time."""
        selector = _Waiting(selectors.DefaultSelector(), self)
        loop = _VirtualLoop(selector, self)
        self._loop = loop
        return loop

    def adopt(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """Makes a running loop use this time; the returned function restores its own.

        Raises TypeError for a loop without a selector (uvloop).
        """
        selector = getattr(loop, "_selector", None)
        if not isinstance(loop, asyncio.SelectorEventLoop) or selector is None:
            raise TypeError(f"time can be moved on asyncio's own event loops only, and this one is {kind_of(loop)}")
        if getattr(loop, "_scheduled", None):
            self._loop_begins_s = loop.time()  # existing timers must fire when they would have
        run_in_executor = loop.run_in_executor
        resolution_s = loop._clock_resolution  # type: ignore[attr-defined]
        self._loop = loop
        replaced = {
            "time": self.loop_time,
            "_selector": _Waiting(selector, self),
            "run_in_executor": lambda executor, work, *args: self.run(run_in_executor, executor, work, *args),
        }
        for name, value in replaced.items():
            setattr(loop, name, value)

        def give_back() -> None:
            loop._selector = selector  # type: ignore[attr-defined]
            for name in ("time", "run_in_executor"):
                delattr(loop, name)
            loop._clock_resolution = resolution_s  # type: ignore[attr-defined]
            self._loop = None

        return give_back

    def run(
        self,
        on_thread: Callable[..., asyncio.Future[Any]],
        executor: Executor | None,
        work: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """Runs work for a loop's `run_in_executor`; does it at once inside `without_threads`."""
        if not _without_threads.get():
            running = on_thread(executor, work, *args)
            self.work_begins()
            running.add_done_callback(lambda done: self.work_ends())
            return running
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(work(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def _wait(self, selector: selectors.BaseSelector, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Waits as a selector does, and passes time if nothing else could give the loop work."""
        self.turns += 1
        is_quick = self._advancing and not self._at_work and self.turns % LOOK_OUTSIDE_EVERY
        ready = [] if is_quick else selector.select(0)
        if ready or timeout == 0:
            return ready
        if self._at_work > self._paused + self._hanging:
            if ready := selector.select(PATIENCE_S):
                return ready
            self._hanging = self._at_work - self._paused
        if self._advancing and (patience_s := self.patience_s()) > 0:
            return selector.select(patience_s)
        if self._settling:
            for quiet in self._settling:
                if not quiet.done():
                    quiet.set_result(None)
            self._settling.clear()
            return []
        if timeout is not None and self._advancing:
            self._pass(_ns(timeout))
            return []
        leads_out = self._is_flowing or len(selector.get_map()) > 1 + self.own_sockets() or self._at_work > self._paused
        if leads_out:
            return self._wait_really(selector, timeout)
        if timeout is None or not self._is_awaited():
            return selector.select(None)
        self._unasked_ns += _ns(timeout)
        if self._unasked_ns > MAX_UNASKED_S * NS_IN_S:
            self._unasked_ns = 0
            raise NothingHappens(
                f"the test has waited for {MAX_UNASKED_S} s of its own time, and nothing came: time does not bring it"
            )
        self._pass(_ns(timeout))
        return []

    def _wait_really(self, selector: selectors.BaseSelector, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        began_ns = time.monotonic_ns()
        ready = selector.select(timeout)
        self._pass(time.monotonic_ns() - began_ns)
        return ready

    def _pass(self, ns: int) -> None:
        self._elapsed_ns += ns
        # From 97 days on a float has no room for the loop's resolution: a timer due now would never count as due.
        if self._elapsed_ns > _FINE_NS and self._loop is not None:
            self._loop._clock_resolution = math.ulp(self.loop_time())  # type: ignore[attr-defined]


class _Waiting(selectors.BaseSelector):
    """A selector that waits by the test's time."""

    def __init__(self, selector: selectors.BaseSelector, virtual: VirtualTime) -> None:
        self._selector = selector
        self._virtual = virtual
        self.register = selector.register  # type: ignore[method-assign]
        self.unregister = selector.unregister  # type: ignore[method-assign]
        self.modify = selector.modify  # type: ignore[method-assign]
        self.get_map = selector.get_map  # type: ignore[method-assign]
        self.get_key = selector.get_key  # type: ignore[method-assign]
        self.close = selector.close  # type: ignore[method-assign]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._virtual._wait(self._selector, timeout)

    def register(self, *args: Any, **named: Any) -> Any: ...
    def unregister(self, *args: Any, **named: Any) -> Any: ...
    def get_map(self) -> Any: ...


class _VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop, with another clock."""

    def __init__(self, selector: selectors.BaseSelector, virtual: VirtualTime) -> None:
        self._virtual = virtual
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual.loop_time()

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        return self._virtual.run(super().run_in_executor, executor, func, *args)


def _ns(seconds: float) -> int:
    """Converts to nanoseconds, rounded up: a timer must not fire a nanosecond early."""
    return int(seconds * NS_IN_S) + 1
