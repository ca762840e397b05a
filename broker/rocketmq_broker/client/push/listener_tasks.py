"""Tasks in which async listeners run, on the client's event loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from rocketmq_broker.client.push.listener_runner import Job, ListenerCancelled, ListenerNotRun, ListenerRunner
from rocketmq_broker.world import RunFunction

logger = logging.getLogger(__name__)

T = TypeVar("T")

_OnDone = Callable[[Any, BaseException | None], None]
_HEEDS_CANCELLATION_WITHIN_S: Final = 1.0


class ListenerTasks(ListenerRunner):
    """A runner of at most `max_tasks` tasks at a time; further jobs wait. A listener that blocks stops the whole client."""

    def __init__(self, name: str, max_tasks: int, run_function: RunFunction | None = None) -> None:
        """`name` is the tasks' name. With `run_function` the listeners are plain functions, which it runs."""
        self._name = name
        self._run = run_function or _result_of
        self._max_tasks = max_tasks
        self._waiting: deque[tuple[Job[Any], _OnDone]] = deque()
        self._running: set[asyncio.Task[Any]] = set()
        self._is_stopped = False
        self.unfinished = 0

    def submit(self, job: Job[T], on_done: Callable[[T | None, BaseException | None], None]) -> None:
        """Runs the job in a task, as soon as the bound allows one more."""
        if self._is_stopped:
            on_done(None, ListenerNotRun("the client is shut down"))
            return
        self.unfinished += 1
        self._waiting.append((job, on_done))
        self._begin()

    async def stop(self, timeout_s: float) -> None:
        """Starts no further job, waits up to `timeout_s` for running ones, and cancels the rest."""
        if self._is_stopped:
            return
        self._is_stopped = True
        while self._waiting:
            self._hand_over(
                self._waiting.popleft()[1], None, ListenerNotRun("the client was shut down before the listener's turn")
            )
        if not self._running:
            return
        _, unending = await asyncio.wait(set(self._running), timeout=timeout_s)
        for task in unending:
            task.cancel()
        if unending:
            logger.warning("%s: %d async listeners still ran at shutdown and were cancelled", self._name, len(unending))
            await asyncio.wait(unending, timeout=_HEEDS_CANCELLATION_WITHIN_S)

    def _begin(self) -> None:
        while self._waiting and len(self._running) < self._max_tasks:
            job, on_done = self._waiting.popleft()
            task = asyncio.get_running_loop().create_task(self._run(job), name=self._name)
            self._running.add(task)
            task.add_done_callback(partial(self._ended, on_done))

    def _ended(self, on_done: _OnDone, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            error = task.exception()
            self._hand_over(on_done, None if error is not None else task.result(), error)
        elif self._is_stopped:
            self._hand_over(on_done, None, ListenerCancelled("the client was shut down before the listener ended"))
        else:
            self._hand_over(on_done, None, RuntimeError("the listener was cancelled"))
        self._begin()

    def _hand_over(self, on_done: _OnDone, result: object, error: BaseException | None) -> None:
        self.unfinished -= 1
        try:
            on_done(result, error)
        except Exception:
            logger.exception("%s: the answer of a listener could not be used", self._name)


async def _result_of(job: Job[Any]) -> Any:
    result = job()
    return await result if inspect.isawaitable(result) else result
