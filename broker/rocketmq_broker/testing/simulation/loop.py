"""The event loop of a simulated world: it has no sockets, and time passes only when nothing else can happen."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import socket
from asyncio import format_helpers
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, Final, Protocol

NS_IN_S: Final = 1_000_000_000
_BEGINS_S: Final = 1_000_000
_MIN_CANCELLED: Final = 100
"""So many cancelled timers may wait before they are taken out."""


class Owner(Protocol):
    """The process that a callback belongs to."""

    is_running: bool
    """False while it is stopped, and after its death."""

    def keep(self, handle: asyncio.Handle) -> None:
        """Keeps a callback that it cannot run now."""

    def start_thread(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Runs a function that may wait."""


OWNER: Final[contextvars.ContextVar[Owner | None]] = contextvars.ContextVar("simulated process", default=None)
"""The process in whose context a callback runs; None for the world itself."""


class NothingLeft(Exception):
    """No callback and no timer is left: the awaited event cannot come."""


class _LoopCallback(asyncio.Handle):
    """A callback that runs at the loop's next turn. It has what the loop reads, and nothing for asyncio's debug mode."""

    __slots__ = ()

    def __init__(  # the constructor of asyncio.Handle would cost as much as the callback
        self, callback: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context
    ) -> None:
        self._context = context
        self._callback = callback
        self._args = args
        self._cancelled = False

    def cancel(self) -> None:
        """Lets the loop pass over it."""
        self._cancelled = True


class _LoopTimer(asyncio.TimerHandle):
    """A callback that runs at its time."""

    __slots__ = ()
    _loop: SimulatedLoop

    def __init__(
        self,
        when_s: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        loop: SimulatedLoop,
        context: contextvars.Context,
    ) -> None:
        self._context = context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._when = when_s
        self._scheduled = True

    def cancel(self) -> None:
        """Lets the loop pass over it, and frees what it holds."""
        if not self._cancelled:
            self._cancelled = True
            self._callback = self._args = None  # type: ignore[assignment]
            if self._scheduled:
                self._loop.note_cancelled()


_Due = tuple[float, int, _LoopTimer]
"""The time of a timer, its number, and the timer. Of two with the same time the earlier made one comes first."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """asyncio's own loop without a selector. Callbacks run in the order in which asyncio runs them, each by its process."""

    def __init__(self) -> None:
        """Starts at time 0."""
        super().__init__()
        self._now_ns = 0
        self._now_s: float = _BEGINS_S
        self.turns = 0
        """How often the loop looked for work."""
        self._timers_made = 0
        self._cancelled_timers = 0
        self.on_error: Callable[[dict[str, Any]], None] = lambda context: None
        """Gets the errors that no code has handled, as asyncio's exception handler does."""

    def time(self) -> float:
        """Returns seconds since a fixed moment."""
        return self._now_s

    def elapsed_ns(self) -> int:
        """Returns the nanoseconds since the world began."""
        return self._now_ns

    def steady_ns(self) -> int:
        """Returns nanoseconds since a fixed moment, the same as that of `time`."""
        return _BEGINS_S * NS_IN_S + self._now_ns

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        """Schedules the callback for the loop's next turn."""
        handle = _LoopCallback(callback, args, contextvars.copy_context() if context is None else context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedules the callback for so many seconds later."""
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedules the callback for a time of `time`."""
        timer = _LoopTimer(when, callback, args, self, contextvars.copy_context() if context is None else context)
        self._timers_made += 1
        heapq.heappush(self._scheduled, (when, self._timers_made, timer))  # type: ignore[attr-defined]
        return timer

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Runs the function in a simulated thread of the current process; at once if there is none."""
        owner = OWNER.get()
        if owner is not None:
            return owner.start_thread(func, *args)
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        """Returns the address itself: machines here have no names."""
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port or 0))]

    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        """Schedules the callback: there is one thread only."""
        return self.call_soon(callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Passes an error that no code has handled to `on_error`."""
        self.on_error(context)

    def give_back(self, handles: list[asyncio.Handle]) -> None:
        """Schedules callbacks again that a process has kept."""
        self._ready.extend(handles)  # type: ignore[attr-defined]

    def clear(self) -> None:
        """Ends all tasks and closes, after the world's end. What they do in a `finally` has no effect."""
        asyncio._set_running_loop(self)
        try:
            for task in asyncio.all_tasks(self):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine = task.get_coro()
                if isinstance(coroutine, Coroutine):
                    with suppress(BaseException):
                        coroutine.close()
            self.close()
        finally:
            asyncio._set_running_loop(None)

    def _run_once(self) -> None:
        ready, timers = self._ready, self._scheduled  # type: ignore[attr-defined]
        self.turns += 1
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            self._pass_time(timers)
        now_s = self._now_s
        while timers and timers[0][0] <= now_s:
            timer = heapq.heappop(timers)[2]
            timer._scheduled = False
            if timer._cancelled:
                self._cancelled_timers -= 1
            else:
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            context = handle._context
            owner = context.get(OWNER)
            if owner is not None and not owner.is_running:
                owner.keep(handle)
                continue
            try:
                context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self._tell(error, handle)

    def _tell(self, error: BaseException, handle: Any) -> None:
        """Tells an error of a callback as asyncio's handles do."""
        callback = format_helpers._format_callback_source(handle._callback, handle._args)
        self.call_exception_handler({"message": f"Exception in callback {callback}", "exception": error, "handle": handle})

    def _pass_time(self, timers: list[_Due]) -> None:
        """Passes the time to the next timer."""
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)[2]._scheduled = False
            self._cancelled_timers -= 1
        if not timers:
            raise NothingLeft("nothing is left to happen in this world, and its end has not come")
        when_s = timers[0][0]
        if when_s > self._now_s:
            self._now_s = when_s
            self._now_ns = round((when_s - _BEGINS_S) * NS_IN_S)

    def note_cancelled(self) -> None:
        """Notes that a timer was cancelled. Takes all cancelled ones out when they are many."""
        self._cancelled_timers += 1
        timers: list[_Due] = self._scheduled  # type: ignore[attr-defined]
        if self._cancelled_timers > max(_MIN_CANCELLED, len(timers) // 2):
            for _, _, timer in timers:
                timer._scheduled = not timer._cancelled
            timers[:] = [due for due in timers if due[2]._scheduled]
            heapq.heapify(timers)
            self._cancelled_timers = 0

    def _check_closed(self) -> None:
        """Lets what is left of a world end after it, without effect."""

    def _process_events(self, event_list: Any) -> None:
        """Has no sockets."""

    def _write_to_self(self) -> None:
        """Has nobody to wake."""
