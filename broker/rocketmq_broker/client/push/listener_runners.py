"""The execution of listeners: functions in threads, async functions as tasks on the event loop, a bounded number of each."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from rocketmq_broker.client.checks.listener_check import is_async
from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.client.event_loop_thread import WAITING_THREAD, CallNotMade, OnReturn
from rocketmq_broker.world import RunFunction, Watch, World

logger = logging.getLogger(__name__)

T = TypeVar("T")

Job = Callable[[], T | Awaitable[T]]
"""A call of a listener."""


class ListenerNotRun(CallNotMade):
    """A listener that did not run before the client's shutdown."""


class ListenerCancelled(ClientError):
    """An async listener that the client's shutdown cancelled: how far it came is unknown."""


class NoThreadLeft(ClientError):
    """A listener that did not run because the system has no thread for it."""


class ListenerRunner(ABC):
    """A runner of listeners with a bound on their number at a time. All methods belong to the event loop."""

    unfinished: int
    """Jobs submitted whose result has not been passed on."""

    @abstractmethod
    def submit(self, job: Job[Any], on_done: OnReturn, context: contextvars.Context | None = None) -> None:
        """Runs the job, in `context` if there is one, then calls `on_done(result, error)` on the event loop.

        After `stop()` no job runs: the error is ListenerNotRun.
        """

    @abstractmethod
    async def stop(self, timeout_s: float) -> None:
        """Starts no further job, drops waiting ones, and waits up to `timeout_s` for running ones."""

    async def run(self, job: Job[T], context: contextvars.Context | None = None) -> T:
        """Runs the job, in `context` if there is one, waits for its result, and raises its error."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.submit(job, partial(_settle, done), context)
        return await done


def _settle(done: asyncio.Future[T], result: T | None, error: BaseException | None) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error if isinstance(error, Exception) else RuntimeError(f"the listener ended with {error!r}"))
    else:
        done.set_result(result)  # type: ignore[arg-type]


_Job = tuple[Callable[[], Any], OnReturn]
_Outcome = tuple[OnReturn, Any, BaseException | None]


class ListenerThreads(ListenerRunner):
    """A bounded pool of daemon threads. All methods belong to the event loop; only the jobs run elsewhere.

    Results come back in bulk, many in one turn of the loop: a fast listener costs no task and no future for each message. Threads
    start when they are needed. The callers bound the number of jobs (flow control, `unfinished`).
    """

    def __init__(self, name: str, max_threads: int, watch: Watch | None) -> None:
        """`name` begins the threads' names; `watch` gets notice of all work."""
        self._name = name
        self._max_threads = max_threads
        self._threads: list[threading.Thread] = []
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._outcomes: deque[_Outcome] = deque()
        self._is_waking = False
        self._is_stopped = False
        self._all_done = asyncio.Event()
        self._watch = watch
        self.unfinished = 0

    def submit(self, job: Job[Any], on_done: OnReturn, context: contextvars.Context | None = None) -> None:
        """Runs the job in a thread, then calls `on_done(result, error)` on the event loop.

        After `stop()` no job runs: the error is ListenerNotRun. Where not even one thread can start, the error is
        NoThreadLeft.
        """
        if self._is_stopped:
            on_done(None, ListenerNotRun("the client is shut down"))
            return
        self.unfinished += 1
        if self._watch is not None:
            self._watch.work_begins()
        if self.unfinished > len(self._threads) < self._max_threads:
            error = self._start_thread()
            if error is not None and not self._threads:
                self._outcomes.append((on_done, None, error))
                self._wake(asyncio.get_running_loop())
                return
        self._jobs.put((job if context is None else partial(context.run, job), on_done))

    async def stop(self, timeout_s: float) -> None:
        """Starts no further job, drops waiting ones, and waits up to `timeout_s` for running ones.

        A listener that hangs keeps its daemon thread; its answer is ignored.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        self._drop_waiting_jobs()
        if self.unfinished:
            self._all_done.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._all_done.wait()
            except TimeoutError:
                logger.warning(
                    "%s: %d listeners still run at shutdown; their answers will not count", self._name, self.unfinished
                )
        for _ in self._threads:
            self._jobs.put(None)

    def _drop_waiting_jobs(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            if job is not None:
                self._outcomes.append((job[1], None, ListenerNotRun("the client was shut down before the listener's turn came")))
                self._wake(asyncio.get_running_loop())

    def _start_thread(self) -> NoThreadLeft | None:
        """Starts one more thread, if the system has one left."""
        thread = threading.Thread(
            target=self._work, args=(asyncio.get_running_loop(),), name=f"{self._name}-{len(self._threads) + 1}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            logger.warning("%s: no thread beside the %d there are: %s", self._name, len(self._threads), error)
            return NoThreadLeft(f"{self._name}: {error}")
        self._threads.append(thread)
        return None

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while (item := self._jobs.get()) is not None:
            job, on_done = item
            try:
                result, error = job(), None
            except BaseException as raised:
                result, error = None, raised
            self._outcomes.append((on_done, result, error))
            self._wake(loop)
            del item, job, on_done, result, error

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._is_waking:
            return
        self._is_waking = True
        try:
            loop.call_soon_threadsafe(self._hand_over)
        except RuntimeError:
            return  # the loop is closed: nobody waits for the answer

    def _hand_over(self) -> None:
        self._is_waking = False
        outcomes = self._outcomes
        while outcomes:
            on_done, result, error = outcomes.popleft()
            self.unfinished -= 1
            if self._watch is not None:
                self._watch.work_ends()
            try:
                on_done(result, error)
            except Exception:
                logger.exception("%s: the answer of a listener could not be used", self._name)
        if not self.unfinished:
            self._all_done.set()


_HEEDS_CANCELLATION_WITHIN_S: Final = 1.0


class ListenerTasks(ListenerRunner):
    """A runner of at most `max_tasks` tasks at a time; further jobs wait. A listener that blocks stops the whole client."""

    def __init__(self, name: str, max_tasks: int, run_function: RunFunction | None = None) -> None:
        """`name` is the tasks' name. With `run_function` the listeners are plain functions, which it runs."""
        self._name = name
        self._run_function = run_function
        self._max_tasks = max_tasks
        self._waiting: deque[tuple[Job[Any], OnReturn, contextvars.Context | None]] = deque()
        self._running: set[asyncio.Task[Any]] = set()
        self._is_stopped = False
        self.unfinished = 0

    def submit(self, job: Job[Any], on_done: OnReturn, context: contextvars.Context | None = None) -> None:
        """Runs the job in a task, as soon as the bound allows one more."""
        if self._is_stopped:
            on_done(None, ListenerNotRun("the client is shut down"))
            return
        self.unfinished += 1
        self._waiting.append((job, on_done, context))
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
            job, on_done, context = self._waiting.popleft()
            if self._run_function is None:
                task = asyncio.get_running_loop().create_task(_result_of(job), name=self._name, context=context)
            else:  # it runs the function elsewhere than in the task
                function = job if context is None else partial(context.run, job)
                task = asyncio.get_running_loop().create_task(self._run_function(function), name=self._name)
            self._running.add(task)
            task.add_done_callback(partial(self._ended, on_done))

    def _ended(self, on_done: OnReturn, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            error = task.exception()
            self._hand_over(on_done, None if error is not None else task.result(), error)
        elif self._is_stopped:
            self._hand_over(on_done, None, ListenerCancelled("the client was shut down before the listener ended"))
        else:
            self._hand_over(on_done, None, RuntimeError("the listener was cancelled"))
        self._begin()

    def _hand_over(self, on_done: OnReturn, result: object, error: BaseException | None) -> None:
        self.unfinished -= 1
        try:
            on_done(result, error)
        except Exception:
            logger.exception("%s: the answer of a listener could not be used", self._name)


async def _result_of(job: Job[Any]) -> Any:
    result = job()
    return await result if inspect.isawaitable(result) else result


class Runners:
    """A runner of several listeners: functions in the threads of one pool, async functions as tasks, a bounded number of each."""

    def __init__(self, name: str, most_at_a_time: int, world: World) -> None:
        """`name` is that of the threads and the tasks. In a world without threads every listener is a task."""
        self._tasks: ListenerRunner = ListenerTasks(name, most_at_a_time)
        self._watch = world.watch
        self._threads: ListenerRunner = (
            ListenerThreads(name, most_at_a_time, world.watch)
            if world.run_function is None
            else ListenerTasks(name, most_at_a_time, world.run_function)
        )

    def of(self, listener: object) -> ListenerRunner:
        """Returns the runner of this listener."""
        return self._tasks if is_async(listener) else self._threads

    async def run_as_caller(self, listener: object, job: Job[T]) -> T:
        """Runs a call of the listener as if the caller made it, waits for its result, and raises its error.

        It has a copy of the caller's context variables. A function runs in the thread that waits for this task by
        `EventLoopThread.run` without a time limit, where there is one.
        """
        waiting = None if is_async(listener) else WAITING_THREAD.get()
        if waiting is not None:
            loop = asyncio.get_running_loop()
            done: asyncio.Future[T] = loop.create_future()

            def hand_over(result: T | None, error: BaseException | None) -> None:
                try:
                    loop.call_soon_threadsafe(_settle, done, result, error)
                except RuntimeError:
                    return  # the loop is closed: no task waits for the answer

            if waiting.offer(job, hand_over):
                return await (done if self._watch is None else self._watched(done, self._watch))
        return await self.of(listener).run(job, contextvars.copy_context())

    async def _watched(self, done: asyncio.Future[T], watch: Watch) -> T:
        watch.work_begins()
        try:
            return await done
        finally:
            watch.work_ends()

    async def stop(self, timeout_s: float) -> None:
        """Starts no further call, and waits up to `timeout_s` for running ones of each kind."""
        for runner in (self._threads, self._tasks):
            await runner.stop(timeout_s)


def runner_of(listener: object, name: str, most_at_a_time: int, world: World) -> ListenerRunner:
    """Returns the runner of a single listener."""
    return Runners(name, most_at_a_time, world).of(listener)
