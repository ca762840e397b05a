"""Runs listeners: functions in threads and async functions as tasks, with limited concurrency."""

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
"""A function that calls a listener."""


class ListenerNotRun(CallNotMade):
    """The listener was not called before the client's shutdown."""


class ListenerCancelled(ClientError):
    """The client's shutdown cancelled an async listener, which may have done part of its work."""


class NoThreadLeft(ClientError):
    """The listener was not called because the system cannot start a thread."""


class ListenerRunner(ABC):
    """Runs a limited number of listeners at a time. Call all methods on the event loop."""

    unfinished: int
    """The number of submitted jobs whose `on_done` has not been called yet."""

    @abstractmethod
    def submit(self, job: Job[Any], on_done: OnReturn, context: contextvars.Context | None = None) -> None:
        """Runs the job, in `context` if given, and then calls `on_done(result, error)` on the event loop.

        After `stop()` the job does not run, and the error is ListenerNotRun.
        """

    @abstractmethod
    async def stop(self, timeout_s: float) -> None:
        """Discards waiting jobs, and waits up to `timeout_s` for running jobs."""

    async def run(self, job: Job[T], context: contextvars.Context | None = None) -> T:
        """Runs the job, in `context` if given, and returns its result or raises its error."""
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
    """A bounded pool of daemon threads. Call all methods on the event loop; the jobs run in the threads.

    Results are passed to the loop in batches, without a task or future for each message. Threads start on demand. Callers must
    limit the number of jobs (flow control); see `unfinished`.
    """

    def __init__(self, name: str, max_threads: int, watch: Watch | None) -> None:
        """`name` is the prefix of the threads' names. `watch` is notified of the beginning and end of each job."""
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
        """Runs the job in a thread, and then calls `on_done(result, error)` on the event loop.

        After `stop()` the job does not run, and the error is ListenerNotRun. If no thread can be started, the error is
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
        """Discards waiting jobs, and waits up to `timeout_s` for running ones.

        A listener that hangs keeps its daemon thread. Its result is ignored.
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
                    "%s: %d listeners are still running at shutdown; their results will be ignored", self._name, self.unfinished
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
                self._outcomes.append((job[1], None, ListenerNotRun("the client was shut down before the listener was called")))
                self._wake(asyncio.get_running_loop())

    def _start_thread(self) -> NoThreadLeft | None:
        """Starts one more thread. Returns an error if the system cannot start one."""
        thread = threading.Thread(
            target=self._work, args=(asyncio.get_running_loop(),), name=f"{self._name}-{len(self._threads) + 1}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            logger.warning("%s: cannot start more than %d threads: %s", self._name, len(self._threads), error)
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
            return  # the loop is closed, so nothing waits for the result

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
                logger.exception("%s: the result of a listener could not be processed", self._name)
        if not self.unfinished:
            self._all_done.set()


_CANCELLATION_TIMEOUT_S: Final = 1.0


class ListenerTasks(ListenerRunner):
    """Runs at most `max_tasks` tasks at a time; further jobs wait. A listener that blocks the loop blocks the whole client."""

    def __init__(self, name: str, max_tasks: int, run_function: RunFunction | None = None) -> None:
        """`name` is the tasks' name. `run_function`, if given, runs listeners that are plain functions."""
        self._name = name
        self._run_function = run_function
        self._max_tasks = max_tasks
        self._waiting: deque[tuple[Job[Any], OnReturn, contextvars.Context | None]] = deque()
        self._running: set[asyncio.Task[Any]] = set()
        self._is_stopped = False
        self.unfinished = 0

    def submit(self, job: Job[Any], on_done: OnReturn, context: contextvars.Context | None = None) -> None:
        """Runs the job in a task as soon as fewer than `max_tasks` tasks are running."""
        if self._is_stopped:
            on_done(None, ListenerNotRun("the client is shut down"))
            return
        self.unfinished += 1
        self._waiting.append((job, on_done, context))
        self._begin()

    async def stop(self, timeout_s: float) -> None:
        """Discards waiting jobs, waits up to `timeout_s` for running ones, and cancels the rest."""
        if self._is_stopped:
            return
        self._is_stopped = True
        while self._waiting:
            self._hand_over(
                self._waiting.popleft()[1], None, ListenerNotRun("the client was shut down before the listener was called")
            )
        if not self._running:
            return
        _, unending = await asyncio.wait(set(self._running), timeout=timeout_s)
        for task in unending:
            task.cancel()
        if unending:
            logger.warning("%s: cancelled %d async listeners that were running at shutdown", self._name, len(unending))
            await asyncio.wait(unending, timeout=_CANCELLATION_TIMEOUT_S)

    def _begin(self) -> None:
        while self._waiting and len(self._running) < self._max_tasks:
            job, on_done, context = self._waiting.popleft()
            if self._run_function is None:
                task = asyncio.get_running_loop().create_task(_result_of(job), name=self._name, context=context)
            else:  # `run_function` does not run the function in the task
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
            logger.exception("%s: the result of a listener could not be processed", self._name)


async def _result_of(job: Job[Any]) -> Any:
    result = job()
    return await result if inspect.isawaitable(result) else result


class Runners:
    """Runs several listeners: functions in one thread pool, and async functions as tasks. Limits the number of each."""

    def __init__(self, name: str, max_concurrency: int, world: World) -> None:
        """`name` is the name of the threads and tasks. If `world` has no threads, every listener runs as a task."""
        self._tasks: ListenerRunner = ListenerTasks(name, max_concurrency)
        self._watch = world.watch
        self._threads: ListenerRunner = (
            ListenerThreads(name, max_concurrency, world.watch)
            if world.run_function is None
            else ListenerTasks(name, max_concurrency, world.run_function)
        )

    def of(self, listener: object) -> ListenerRunner:
        """Returns the runner for this listener."""
        return self._tasks if is_async(listener) else self._threads

    async def run_as_caller(self, listener: object, job: Job[T]) -> T:
        """Runs a call of the listener in the caller's context, and returns its result or raises its error.

        The listener gets a copy of the caller's context variables. If a thread waits for this task in `EventLoopThread.run`
        without a timeout, a plain function runs in that thread.
        """
        waiting = None if is_async(listener) else WAITING_THREAD.get()
        if waiting is not None:
            loop = asyncio.get_running_loop()
            done: asyncio.Future[T] = loop.create_future()

            def hand_over(result: T | None, error: BaseException | None) -> None:
                try:
                    loop.call_soon_threadsafe(_settle, done, result, error)
                except RuntimeError:
                    return  # the loop is closed, so no task waits for the result

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
        """Stops both runners. Waits up to `timeout_s` for each."""
        for runner in (self._threads, self._tasks):
            await runner.stop(timeout_s)


def runner_of(listener: object, name: str, max_concurrency: int, world: World) -> ListenerRunner:
    """Creates and returns the runner for a single listener."""
    return Runners(name, max_concurrency, world).of(listener)
