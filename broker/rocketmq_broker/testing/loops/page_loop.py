"""An event loop without sockets, threads and signals, for a Python interpreter in a web page (Pyodide).

`VirtualTime.adopt` makes the loop use a test's clock. All connections are in the test's in-memory network.
"""

import asyncio
import selectors
from asyncio import events, tasks
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import partial
from typing import Any, NoReturn, TypeVar

from rocketmq_broker.testing.virtual_time import NothingHappens

T = TypeVar("T")


class PageLoop(asyncio.SelectorEventLoop):
    """An event loop that only runs callbacks and timers. It also runs in CPython, with the same results."""

    def __init__(self) -> None:
        """Creates a loop, which is not running."""
        super().__init__(_NoFiles())
        self._outside: deque[Callable[[], None]] = deque()

    def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine and returns its result, even if another event loop runs in the caller's thread, as in a web page."""
        outer = events._get_running_loop()
        task = None if outer is None else asyncio.current_task(outer)
        # Since CPython 3.14 a thread has one current task, not one for each of its loops.
        if outer is not None and task is not None:
            tasks._leave_task(outer, task)
        events._set_running_loop(None)
        try:
            return self._result(self.create_task(work))
        finally:
            events._set_running_loop(outer)
            if outer is not None and task is not None:
                tasks._enter_task(outer, task)

    def call_outside(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Calls a function between two turns of the loop, where it may call `complete`. Returns a future of its result.

        Elsewhere a thread would call a function that waits for the loop. A page has none, so `complete` calls it.
        """
        result: asyncio.Future[T] = self.create_future()
        self._outside.append(partial(copy_context().run, _set_result, result, function))
        self.stop()
        return result

    def _result(self, task: asyncio.Task[T]) -> T:
        task.add_done_callback(lambda done: self.stop())
        while not task.done():
            self.run_forever()
            while self._outside:
                self._outside.popleft()()
        return task.result()

    # A loop has a pair of sockets by which other threads wake it. A page has neither.

    def _make_self_pipe(self) -> None: ...
    def _close_self_pipe(self) -> None: ...
    def _write_to_self(self) -> None: ...


def _set_result(result: asyncio.Future[T], function: Callable[[], T]) -> None:
    if result.cancelled():
        return
    try:
        found = function()
    except BaseException as error:  # also what ends a process, as in a task
        if not result.cancelled():
            result.set_exception(error)
    else:
        if not result.cancelled():
            result.set_result(found)


class _NoFiles(selectors.BaseSelector):
    """A selector without files."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Returns an empty list. Raises NothingHappens if the loop would wait forever, because the page would freeze."""
        if timeout is None:
            raise NothingHappens("nothing can happen: the loop has no timers, and a page has no sockets")
        return []

    def register(self, *args: Any, **named: Any) -> NoReturn:
        """Raises OSError."""
        raise OSError("a page has no sockets")

    def unregister(self, *args: Any, **named: Any) -> NoReturn:
        """Raises OSError."""
        raise OSError("a page has no sockets")

    def get_map(self) -> dict[Any, selectors.SelectorKey]:
        """Returns an empty dict."""
        return {}
