"""Simulates the threads of a process. A thread starts after a random delay, and blocks in simulated time.

Each thread is a greenlet on the one real thread. Threads switch only where they block, so that the same seed always gives the
same order.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from rocketmq_broker.world import Chance

T = TypeVar("T")

_SLICE_S: Final = 0.5
"""The maximum time in seconds between two checks whether the event of a wait has occurred."""


_MAX_WAITS_AT_END: Final = 10
"""The maximum number of waits in the `finally` blocks of a thread that is ended."""


class CannotWaitHere(RuntimeError):
    """Raised when code on the event loop tries to block, which is allowed only in threads. A real event loop would be blocked."""


class SimulatedThreads:
    """The threads of one process. Implements `rocketmq_broker.world.Watch`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, context: contextvars.Context, chance: Chance, latest_start_s: float
    ) -> None:
        """Creates an empty set. `context` is the process's context. A thread starts within `latest_start_s` seconds."""
        self._loop = loop
        self._context = context
        self._chance = chance
        self._latest_start_s = latest_start_s
        self._alive: dict[greenlet, None] = {}

    def start(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Runs the function in a new thread."""
        loop = self._loop
        done: asyncio.Future[T] = loop.create_future()
        context = self._context.copy()

        def work() -> None:
            try:
                result = function(*args)
            except BaseException as error:
                _settle(done, None, error)
            else:
                _settle(done, result, None)
            self._alive.pop(thread, None)

        thread = greenlet(work)
        thread.gr_context = context
        self._alive[thread] = None
        loop.call_later(self._chance.random() * self._latest_start_s, self._go_on, thread, context=self._context.copy())
        return done

    async def run(self, function: Callable[[], T]) -> T:
        """Runs the function in a new thread, and returns its result (`World.run_function`)."""
        return await self.start(function)

    def wait_for(self, awaitable: Awaitable[T]) -> T:
        """Blocks a thread until a coroutine or future on the event loop is done. Raises CannotWaitHere."""
        thread = getcurrent()
        hub = thread.parent
        if hub is None:
            raise CannotWaitHere("blocking calls are allowed only in a thread of a simulated process")
        future = asyncio.ensure_future(awaitable, loop=self._loop)
        future.add_done_callback(lambda _: self._go_on(thread), context=self._context.copy())
        while not future.done():
            hub.switch()
        return future.result()

    def sleep(self, seconds: float) -> None:
        """Blocks a thread for `seconds` of the world's time. Raises CannotWaitHere."""
        loop = self._loop
        over: asyncio.Future[None] = loop.create_future()
        loop.call_later(seconds, _settle, over, None, None, context=self._context.copy())
        self.wait_for(over)

    def acquire(self, try_it: Callable[[], bool], timeout_s: float) -> bool:
        """Blocks a thread until `try_it` returns True. Returns False after `timeout_s` seconds. `try_it` must not block."""
        loop = self._loop
        end_s = loop.time() + timeout_s
        while not try_it():
            if loop.time() >= end_s:
                return False
            self.sleep(0.001 + 0.009 * self._chance.random())
        return True

    def _go_on(self, thread: greenlet) -> None:
        """Switches to a thread. As in a real thread, asyncio has no running event loop there."""
        asyncio._set_running_loop(None)
        try:
            thread.switch()
        finally:
            asyncio._set_running_loop(self._loop)

    def clear(self) -> None:
        """Ends all threads after the world's end, including those of a killed process.

        Otherwise the garbage collector would unwind a greenlet in the middle of other work.
        """
        for thread in list(self._alive):
            for _ in range(_MAX_WAITS_AT_END):
                if not thread:
                    break
                thread.throw(GreenletExit)
        self._alive.clear()

    def work_begins(self) -> None:
        """Does nothing, because simulated threads do not run in parallel with the event loop."""

    def work_ends(self) -> None:
        """Does nothing, because simulated threads do not run in parallel with the event loop."""

    def pause(self, wait: Callable[[float | None], bool], seconds: float | None) -> bool:
        """Blocks a thread until `wait` returns True, or for `seconds` of the world's time. Returns False after that time."""
        loop = self._loop
        end_s = None if seconds is None else loop.time() + seconds
        while not wait(0):
            left_s = _SLICE_S if end_s is None else end_s - loop.time()
            if left_s <= 0:
                return False
            self.sleep(min(_SLICE_S, left_s))
        return True


def _settle(done: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
