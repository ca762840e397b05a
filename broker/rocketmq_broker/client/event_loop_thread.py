"""Runs an event loop in a thread, for programs that have no event loop, such as Flask applications and scripts."""

import asyncio
import atexit
import logging
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

from rocketmq_broker.client.errors import ClientError, NotRunning
from rocketmq_broker.message.text.mistakes import kind_of
from rocketmq_broker.world import RunCoroutine, current_world

logger = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C")


class CallNotMade(NotRunning):
    """A call was not made, because its thread stopped waiting or the client was shut down."""


class WaitingThread:
    """A thread that waits in `EventLoopThread.run`. While it waits, it can make calls for the coroutine."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], OnReturn] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_waiting = True

    def offer(self, call: Callable[[], Any], on_return: "OnReturn") -> bool:
        """Queues a call for the thread. After the call, the thread calls `on_return(result, error)`.

        Returns False if the thread no longer waits. The error is CallNotMade if the thread stopped waiting before it made
        the call.
        """
        with self._lock:
            if self._is_waiting:
                self._calls.put((call, on_return))
            return self._is_waiting

    def make_calls_until(self, done: Future[T]) -> T:
        """Makes the offered calls until the future `done` is done. Returns the future's result or raises its error."""
        done.add_done_callback(lambda _: self._calls.put(None))
        try:
            while (item := self._calls.get()) is not None:
                call, on_return = item
                try:
                    result, error = call(), None
                except BaseException as raised:
                    result, error = None, raised
                on_return(result, error)
                if error is not None and not isinstance(error, Exception):
                    raise error
                del item, call, on_return, result, error
            return done.result()
        finally:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        with self._lock:
            self._is_waiting = False
        while not self._calls.empty():
            if (item := self._calls.get()) is not None:
                item[1](None, CallNotMade("the thread that would have made the call stopped waiting"))


OnReturn = Callable[[Any, BaseException | None], None]
"""A callback with the result or the error of a call. It runs in the thread that made the call."""

WAITING_THREAD: Final[ContextVar[WaitingThread | None]] = ContextVar("waiting_thread", default=None)
"""The thread that waits for this task without a timeout, if any."""


class EventLoopThread:
    """A thread that runs the client's coroutines, for callers without an event loop. Any number of threads may call `run`.

    with EventLoopThread() as loop, loop.running(Producer("order-producers")) as producer:
        result = loop.run(producer.send(message))

    If a `with` block is not possible, for example in an app factory, call `start` and `enter`. `stop` is then called
    automatically when the program exits.
    """

    def __init__(self, name: str = "client-event-loop") -> None:
        """`name` is the thread's name."""
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._run_in_world: RunCoroutine | None = None
        self._world = current_world()
        self._process_id: int | None = None
        self._clients = ExitStack()

    def start(self) -> None:
        """Starts the thread, and returns once its event loop runs.

        In a simulation no thread starts, and `run` uses the event loop of the simulation. The thread ends when `stop` is
        called or the program exits. It does not survive a fork, so start it in the process that uses it.
        """
        if (run_in_world := current_world().run_coroutine) is not None:
            self._run_in_world = run_in_world
            return
        self._refuse_after_fork()
        if self._thread is not None:
            ended = not self._thread.is_alive()
            raise NotRunning(
                "the event loop thread was stopped and cannot be started again: create a new one"
                if ended
                else "the event loop thread is already started: start it once"
            )
        is_running = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(is_running,), name=self._name, daemon=True)
        self._thread.start()
        is_running.wait()
        self._process_id = self._world.process_id()
        atexit.register(self.stop)

    def enter(self, client: AbstractAsyncContextManager[C]) -> C:
        """Starts `client`, a producer or consumer, and returns it. A later call of `stop` shuts the client down.

        Raises the errors of starting the client, and NotRunning if this thread is not running.
        """
        return self._clients.enter_context(self.running(client))

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs the coroutine on the loop, and returns its result or raises its error.

        The coroutine gets a copy of the caller's context variables. Without `timeout_s`, a local transaction that is a plain
        function runs in the calling thread, as with Apache's client, and can use the thread's variables. After `timeout_s`,
        cancels the coroutine and raises TimeoutError. Raises NotRunning before `start`, after `stop` and in a process that was
        forked after `start`. Raises TypeError if `work` is not a coroutine.
        """
        if not asyncio.iscoroutine(work):
            raise TypeError(_no_coroutine(work))
        if self._run_in_world is not None:
            return cast(T, self._run_in_world(work, timeout_s))
        if self._is_forked():
            work.close()
            self._refuse_after_fork()
        loop = self._loop
        if loop is None or loop.is_closed() or not loop.is_running():
            work.close()
            raise NotRunning(
                "the event loop thread is not running: "
                + ("start it, or use `with EventLoopThread() as loop:`" if loop is None else "it was stopped")
            )
        if threading.current_thread() is self._thread:
            work.close()
            raise NotRunning("run() was called in the event loop thread and would wait for itself: await the coroutine")
        waiting = WaitingThread() if timeout_s is None else None
        before = WAITING_THREAD.set(waiting)
        future = asyncio.run_coroutine_threadsafe(work, loop)  # with a copy of this context
        WAITING_THREAD.reset(before)
        try:
            return future.result(timeout_s) if waiting is None else waiting.make_calls_until(future)
        except TimeoutError:
            if future.done():
                raise  # raised by the coroutine itself
            future.cancel()
            raise TimeoutError(f"no result within {timeout_s:g} s: the coroutine was cancelled") from None
        except CancelledError:
            raise NotRunning("the event loop thread was stopped before the coroutine ended") from None

    @contextmanager
    def running(self, client: AbstractAsyncContextManager[C]) -> Iterator[C]:
        """Starts `client`, a producer or consumer, and shuts it down after the block.

        Raises the errors of starting the client, and NotRunning if this thread is not running.
        """
        entered = self.run(_enter(client))
        try:
            yield entered
        finally:
            self.run(_leave(client))

    def stop(self, timeout_s: float = 3.0) -> None:
        """Shuts down the clients that `enter` started, cancels and awaits running tasks, and ends the event loop.

        Waits at most `timeout_s` for the end of the loop. Shut down all other clients first. Does nothing in a forked
        process, because the clients belong to its parent process.
        """
        if self._is_forked():
            return
        atexit.unregister(self.stop)
        self._shut_down_clients()
        self._run_in_world = None
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout_s)
        if thread.is_alive():
            logger.warning("the event loop did not stop within %g s", timeout_s)

    def __enter__(self) -> Self:
        """Starts the thread."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Calls `stop`."""
        self.stop()

    def _shut_down_clients(self) -> None:
        try:
            self._clients.close()
        except (ClientError, TimeoutError) as error:
            logger.warning("a client did not shut down cleanly: %s", error)

    def _is_forked(self) -> bool:
        return self._process_id is not None and self._world.process_id() != self._process_id

    def _refuse_after_fork(self) -> None:
        if self._is_forked():
            raise NotRunning(
                f"the event loop thread was started in process {self._process_id} and does not run in its fork "
                f"{self._world.process_id()}. Start it and its clients after the fork: with gunicorn, omit --preload or use "
                "the post_fork hook; with Celery, use worker_process_init"
            )

    def _serve(self, is_running: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self._loop.call_soon(is_running.set)
            self._loop.run_forever()


async def _enter(client: AbstractAsyncContextManager[C]) -> C:
    return await client.__aenter__()


async def _leave(client: AbstractAsyncContextManager[Any]) -> None:
    await client.__aexit__(None, None, None)


def _no_coroutine(work: object) -> str:
    hint = ": call it, as in loop.run(producer.start())" if callable(work) else ": call it as loop.run(producer.send(message))"
    return f"run() expects a coroutine, not {kind_of(work)}{hint}"
