"""Threads for listeners, and the return of their answers to the event loop."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from rocketmq_broker.client.push.listener_runner import Job, ListenerNotRun, ListenerRunner, NoThreadLeft
from rocketmq_broker.world import Watch

logger = logging.getLogger(__name__)

T = TypeVar("T")

_Job = tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]
_Outcome = tuple[Callable[[Any, BaseException | None], None], Any, BaseException | None]


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

    def submit(self, job: Job[T], on_done: Callable[[T | None, BaseException | None], None]) -> None:
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
        self._jobs.put((job, on_done))

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
