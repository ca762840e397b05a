"""Virtual time for a test. The clock stops while the event loop has work, and then jumps to the next timer.

An event loop with virtual time runs like any other. Before the loop waits for its next timer, it checks for other
sources of work. An outside client or socket belongs to another process or to a thread that this clock does not
control.

    an event is ready                         -> the loop continues, and no time passes
    a thread works for the loop               -> the loop waits for it, and no time passes
    an outside client must still respond      -> during `advance` the loop waits for it, and no time passes
    the test waits, without outside sockets   -> time jumps to the next timer
    an outside socket is open                 -> the loop waits, and time passes like real time
    the test does not wait for the loop       -> the loop waits, and no time passes

`advance` always jumps. Timers fire in order, each at its time. Only maintenance in long idle periods is skipped
(`idle_skip`).
"""

import asyncio
import math
import selectors
import time
from asyncio.proactor_events import BaseProactorEventLoop
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

from rocketmq_broker.message.text.mistakes import kind_of

NS_IN_S: Final = 1_000_000_000
MAX_WORK_S: Final = 1.0
"""The real time in seconds after which a busy thread is assumed to wait for virtual time to pass."""
MAX_UNASKED_S: Final = 3600
"""The maximum virtual time in seconds that passes in one wait without `advance`. A longer wait is assumed to be endless."""
LOOK_OUTSIDE_EVERY: Final = 16
"""The number of turns of the loop between two polls of the sockets during `advance`. A poll takes longer than firing a timer."""
_LOOP_BEGINS_S: Final = 1_000_000
_LOOK_AGAIN_S: Final = 0.002
_FINE_NS: Final = 30 * 86_400 * NS_IN_S
"""The maximum time in nanoseconds for which seconds in a float are more precise than 1 ns, the resolution of event loops."""


_without_threads: ContextVar[bool] = ContextVar("without_threads", default=False)


@contextmanager
def without_threads() -> Iterator[None]:
    """Runs the thread work of tasks and timers created in the block on the event loop, so that its order is deterministic."""
    token = _without_threads.set(True)
    try:
        yield
    finally:
        _without_threads.reset(token)


class NothingHappens(Exception):
    """Raised if the test waits for an event that will never occur, no matter how much time passes."""


class _Selector(Protocol):
    """The selector of an event loop, or its proactor on Windows."""

    def select(self, timeout: float | None = None) -> list[Any]: ...


class VirtualTime:
    """The clock of one event loop. Any thread may read it. Call all other methods on the loop's thread."""

    def __init__(self, start_ms: int, *, is_awaited: Callable[[], bool] = lambda: True, is_flowing: bool = False) -> None:
        """Creates a clock. `start_ms` is the initial time in milliseconds since the epoch.

        `is_awaited` returns whether the test is waiting now.

        With `is_flowing` time passes like real time, and jumps only in `advance`.
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
        """A function that returns the number of the loop's listening sockets."""
        self.real_wait_s: Callable[[], float] = lambda: 0
        """A function that returns the real seconds to wait for answers of outside clients before the next jump."""

    # reading the time

    @property
    def elapsed_s(self) -> float:
        """The seconds since the initial time."""
        return self._elapsed_ns / NS_IN_S

    def wall_ns(self) -> int:
        """Returns nanoseconds since the epoch."""
        return self._start_ns + self._elapsed_ns

    def steady_ns(self) -> int:
        """Returns nanoseconds since a fixed moment."""
        return _LOOP_BEGINS_S * NS_IN_S + self._elapsed_ns

    def loop_time(self) -> float:
        """Returns seconds since a fixed moment, for the event loop."""
        return self._loop_begins_s + self._elapsed_ns / NS_IN_S

    # moving the time

    async def advance(self, seconds: float) -> None:
        """Advances the clock.

        On return all due timers have fired, and all work is done. Raises ValueError for a negative number of seconds.
        """
        if not seconds >= 0:
            raise ValueError(f"seconds must not be negative: {seconds}")
        self._unasked_ns = 0
        self._advancing += 1
        try:
            await asyncio.sleep(seconds)
            await self.settle()
        finally:
            self._advancing -= 1

    def leap(self, seconds: float) -> None:
        """Advances the clock without running the loop. Overdue timers fire in the next turn."""
        self._pass(int(seconds * NS_IN_S))

    @property
    def is_at_work(self) -> bool:
        """Whether a thread works for the loop."""
        return self._at_work > 0

    async def settle(self) -> None:
        """Waits until the loop has no work before its next timer."""
        quiet: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settling.append(quiet)
        await quiet

    def wanted(self) -> None:
        """Restarts the count towards MAX_UNASKED_S, because the test waits with its own timeout."""
        self._unasked_ns = 0

    # threads that work for the loop

    def work_begins(self) -> None:
        """Records that a thread begins to work for the loop."""
        self._at_work += 1

    def work_ends(self) -> None:
        """Records that the loop has received a thread's result."""
        self._at_work -= 1
        self._hanging = min(self._hanging, self._at_work)

    def pause(self, wait: Callable[[float | None], bool], seconds: float | None) -> bool:
        """Makes a working thread wait for `seconds` of virtual time. Returns whether the awaited event occurred.

        `wait` waits for the event in real time, with a timeout, and returns whether it occurred.
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
        loop = _VirtualLoop(_Waiting(selectors.DefaultSelector(), self), self)
        self._loop = loop
        return loop

    def adopt(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """Makes a running loop use this clock. Returns a function that restores the loop's own clock.

        Raises TypeError for a loop that is not asyncio's (uvloop).
        """
        selector = getattr(loop, "_selector", None)
        if not isinstance(loop, asyncio.SelectorEventLoop | BaseProactorEventLoop) or selector is None:
            raise TypeError(f"virtual time requires asyncio's own event loop, not {kind_of(loop)}")
        if getattr(loop, "_scheduled", None):
            self._loop_begins_s = loop.time()  # existing timers keep their times
        run_in_executor = loop.run_in_executor
        resolution_s = loop._clock_resolution  # type: ignore[union-attr]
        self._loop = loop
        replaced = {
            "time": self.loop_time,
            "_selector": (_WaitingProactor if isinstance(loop, BaseProactorEventLoop) else _Waiting)(selector, self),
            "run_in_executor": lambda executor, work, *args: self.run(run_in_executor, executor, work, *args),
        }
        for name, value in replaced.items():
            setattr(loop, name, value)

        def give_back() -> None:
            loop._selector = selector  # type: ignore[union-attr]
            for name in ("time", "run_in_executor"):
                delattr(loop, name)
            loop._clock_resolution = resolution_s  # type: ignore[union-attr]
            self._loop = None

        return give_back

    def run(
        self,
        on_thread: Callable[..., asyncio.Future[Any]],
        executor: Executor | None,
        work: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """Implements `run_in_executor`. Inside `without_threads` it runs the work immediately."""
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

    def _wait(self, selector: _Selector, open_files: Callable[[], int], timeout: float | None) -> list[Any]:
        """Waits for events like a selector, or advances the virtual clock if the loop has no other source of work.

        `open_files` returns the number of files that the selector waits for, including the loop's own file.
        """
        self.turns += 1
        is_quick = self._advancing and not self._at_work and self.turns % LOOK_OUTSIDE_EVERY
        ready = [] if is_quick else selector.select(0)
        if ready or timeout == 0:
            return ready
        if self._at_work > self._paused + self._hanging:
            if ready := selector.select(MAX_WORK_S):
                return ready
            self._hanging = self._at_work - self._paused
        if self._advancing and (real_wait_s := self.real_wait_s()) > 0:
            return selector.select(real_wait_s)
        if self._settling:
            for quiet in self._settling:
                if not quiet.done():
                    quiet.set_result(None)
            self._settling.clear()
            return []
        if timeout is not None and self._advancing:
            self._pass(_ns(timeout))
            return []
        leads_out = self._is_flowing or open_files() > 1 + self.own_sockets() or self._at_work > self._paused
        if leads_out:
            return self._wait_really(selector, timeout)
        if timeout is None or not self._is_awaited():
            return selector.select(None)
        self._unasked_ns += _ns(timeout)
        if self._unasked_ns > MAX_UNASKED_S * NS_IN_S:
            self._unasked_ns = 0
            raise NothingHappens(f"the test waited for {MAX_UNASKED_S} s of virtual time for an event that did not occur")
        self._pass(_ns(timeout))
        return []

    def _wait_really(self, selector: _Selector, timeout: float | None) -> list[Any]:
        began_ns = time.monotonic_ns()
        ready = selector.select(timeout)
        self._pass(time.monotonic_ns() - began_ns)
        return ready

    def _pass(self, ns: int) -> None:
        self._elapsed_ns += ns
        # After 97 days a float is too coarse for the loop's resolution, and a timer that is due would never fire.
        if self._elapsed_ns > _FINE_NS and self._loop is not None:
            self._loop._clock_resolution = math.ulp(self.loop_time())  # type: ignore[attr-defined]


class _Waiting(selectors.BaseSelector):
    """A selector that waits in virtual time."""

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
        return self._virtual._wait(self._selector, lambda: len(self._selector.get_map()), timeout)

    def register(self, *args: Any, **named: Any) -> Any: ...
    def unregister(self, *args: Any, **named: Any) -> Any: ...
    def get_map(self) -> Any: ...


class _WaitingProactor:
    """A proactor (Windows) that waits in virtual time. It waits for operations on files, such as accepting and reading."""

    def __init__(self, proactor: Any, virtual: VirtualTime) -> None:
        self._proactor = proactor
        self._virtual = virtual

    def select(self, timeout: float | None = None) -> list[Any]:
        return self._virtual._wait(self._proactor, lambda: len(self._proactor._cache), timeout)


class _VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's selector event loop with a virtual clock."""

    def __init__(self, selector: selectors.BaseSelector, virtual: VirtualTime) -> None:
        self._virtual = virtual
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual.loop_time()

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        return self._virtual.run(super().run_in_executor, executor, func, *args)


def _ns(seconds: float) -> int:
    """Converts to nanoseconds. Rounds up, so that a timer does not fire early."""
    return int(seconds * NS_IN_S) + 1
