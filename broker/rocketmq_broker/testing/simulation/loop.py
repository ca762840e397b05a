"""The event loop of a simulated world. The loop has no sockets, and advances time only when no callback is ready."""

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
"""The minimum number of cancelled timers before they are removed."""


class Owner(Protocol):
    """The process that owns a callback."""

    is_running: bool
    """False while the process is stopped, and after its death."""

    def keep(self, handle: asyncio.Handle) -> None:
        """Receives a callback that became due while the process is stopped or after it has ended.

        A stopped process runs the callback when it continues. A process that has ended never runs it.
        """

    def start_thread(self, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Runs a function that may block."""


OWNER: Final[contextvars.ContextVar[Owner | None]] = contextvars.ContextVar("simulated process", default=None)
"""The process of the running callback; None for a callback of the world itself."""


class NothingLeft(Exception):
    """Raised when no callback and no timer is left, so that the awaited event cannot occur."""


class _LoopCallback(asyncio.Handle):
    """A callback for the loop's next turn. It has only the attributes that the loop reads, without those of debug mode."""

    __slots__ = ()

    def __init__(  # the constructor of asyncio.Handle would take as long as the callback
        self, callback: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context
    ) -> None:
        self._context = context
        self._callback = callback
        self._args = args
        self._cancelled = False

    def cancel(self) -> None:
        """Makes the loop skip the callback."""
        self._cancelled = True


class _LoopTimer(asyncio.TimerHandle):
    """A callback that runs at a given time."""

    __slots__ = ()
    _loop: "SimulatedLoop"

    def __init__(
        self,
        when_s: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        loop: "SimulatedLoop",
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
        """Makes the loop skip the callback, and releases its references."""
        if not self._cancelled:
            self._cancelled = True
            self._callback = self._args = None  # type: ignore[assignment]
            if self._scheduled:
                self._loop.note_cancelled()


_Due = tuple[float, int, _LoopTimer]
"""The time of a timer, its sequence number, and the timer. Timers with the same time run in order of creation."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """asyncio's event loop without a selector. Callbacks run in asyncio's order, each in its process."""

    def __init__(self) -> None:
        """Creates a loop at time 0."""
        super().__init__()
        self._now_ns = 0
        self._now_s: float = _BEGINS_S
        self.turns = 0
        """The number of turns of the loop."""
        self._timers_made = 0
        self._cancelled_timers = 0
        self.on_error: Callable[[dict[str, Any]], None] = lambda context: None
        """The handler of unhandled errors, like asyncio's exception handler."""

    def time(self) -> float:
        """Returns seconds since a fixed moment."""
        return self._now_s

    def elapsed_ns(self) -> int:
        """Returns the nanoseconds since the world began."""
        return self._now_ns

    def steady_ns(self) -> int:
        """Returns nanoseconds since the same fixed moment as `time`."""
        return _BEGINS_S * NS_IN_S + self._now_ns

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        """Schedules the callback for the loop's next turn."""
        handle = _LoopCallback(callback, args, contextvars.copy_context() if context is None else context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedules the callback `delay` seconds from now."""
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedules the callback at `when`, in seconds on the clock of `time`."""
        timer = _LoopTimer(when, callback, args, self, contextvars.copy_context() if context is None else context)
        self._timers_made += 1
        heapq.heappush(self._scheduled, (when, self._timers_made, timer))  # type: ignore[attr-defined]
        return timer

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Runs the function in a simulated thread of the calling process.

        Runs it immediately if the caller does not belong to a simulated process.
        """
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
        """Returns the given address unchanged, because simulated machines have no host names."""
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port or 0))]

    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        """Calls `call_soon`, because there is only one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Passes an unhandled error to `on_error`."""
        self.on_error(context)

    def give_back(self, handles: list[asyncio.Handle]) -> None:
        """Schedules the callbacks that a process has kept."""
        self._ready.extend(handles)  # type: ignore[attr-defined]

    def clear(self) -> None:
        """Ends all tasks and closes the loop. Call it after the world's end. The `finally` blocks of tasks have no effect."""
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
                self._report(error, handle)

    def _report(self, error: BaseException, handle: Any) -> None:
        """Reports an error of a callback as asyncio's handles do."""
        callback = format_helpers._format_callback_source(handle._callback, handle._args)
        self.call_exception_handler({"message": f"Exception in callback {callback}", "exception": error, "handle": handle})

    def _pass_time(self, timers: list[_Due]) -> None:
        """Advances the time to the next timer."""
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)[2]._scheduled = False
            self._cancelled_timers -= 1
        if not timers:
            raise NothingLeft("the simulation has not ended, but no callback or timer is left")
        when_s = timers[0][0]
        if when_s > self._now_s:
            self._now_s = when_s
            self._now_ns = round((when_s - _BEGINS_S) * NS_IN_S)

    def note_cancelled(self) -> None:
        """Counts a cancelled timer. Removes all cancelled timers when there are too many."""
        self._cancelled_timers += 1
        timers: list[_Due] = self._scheduled  # type: ignore[attr-defined]
        if self._cancelled_timers > max(_MIN_CANCELLED, len(timers) // 2):
            for _, _, timer in timers:
                timer._scheduled = not timer._cancelled
            timers[:] = [due for due in timers if due[2]._scheduled]
            heapq.heapify(timers)
            self._cancelled_timers = 0

    def _check_closed(self) -> None:
        """Does nothing, so that code that still runs after the world's end does not fail."""

    def _process_events(self, event_list: Any) -> None:
        """Does nothing, because there are no sockets."""

    def _write_to_self(self) -> None:
        """Does nothing, because there is no other thread."""
