"""The one synchronous facade: an event loop in a thread, for programs that have none (Flask threads, scripts)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from rocketmq_broker.client.errors import NotRunning
from rocketmq_broker.message.text.mistakes import kind_of
from rocketmq_broker.world import RunCoroutine, current_world

logger = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C")


class EventLoopThread:
    """A thread that runs the client's coroutines for threads that wait for their results. Any number of threads may call `run`.

    with EventLoopThread() as loop, loop.running(Producer("order-producers")) as producer:
        result = loop.run(producer.send(message))
    """

    def __init__(self, name: str = "client-event-loop") -> None:
        """`name` is the thread's name."""
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._run_in_world: RunCoroutine | None = None

    def start(self) -> None:
        """Starts the thread, and returns when its loop runs. In a world without threads the world's own loop takes its place."""
        if (run_in_world := current_world().run_coroutine) is not None:
            self._run_in_world = run_in_world
            return
        if self._thread is not None:
            ended = not self._thread.is_alive()
            raise NotRunning(
                "the event loop thread was stopped and cannot be started again: make a new one"
                if ended
                else "the event loop thread was started before: start it once"
            )
        is_running = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(is_running,), name=self._name, daemon=True)
        self._thread.start()
        is_running.wait()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs the coroutine on the loop, waits for its result, and raises its error.

        Cancels it after `timeout_s` and raises TimeoutError. Raises NotRunning before `start` and after `stop`,
        TypeError for a value that is no coroutine.
        """
        if not asyncio.iscoroutine(work):
            raise TypeError(_no_coroutine(work))
        if self._run_in_world is not None:
            return cast(T, self._run_in_world(work, timeout_s))
        loop = self._loop
        if loop is None or loop.is_closed() or not loop.is_running():
            work.close()
            raise NotRunning(
                "the event loop thread does not run: "
                + ("start it, or use `with EventLoopThread() as loop:`" if loop is None else "it was stopped")
            )
        if threading.current_thread() is self._thread:
            work.close()
            raise NotRunning("run() would wait for its own thread: await the coroutine instead")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            if future.done():
                raise  # the coroutine's own time-out
            future.cancel()
            raise TimeoutError(f"no result within {timeout_s:g} s: what was to be done is cancelled") from None
        except CancelledError:
            raise NotRunning("the event loop thread was stopped meanwhile") from None

    @contextmanager
    def running(self, client: AbstractAsyncContextManager[C]) -> Iterator[C]:
        """Starts a producer or consumer, and shuts it down after the block. Raises as `run` does."""
        entered = self.run(_enter(client))
        try:
            yield entered
        finally:
            self.run(_leave(client))

    def stop(self, timeout_s: float = 3.0) -> None:
        """Ends the loop; cancels and awaits running tasks. Shut producers and consumers down first."""
        self._run_in_world = None
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout_s)
        if thread.is_alive():
            logger.warning("the event loop did not end within %g s", timeout_s)

    def __enter__(self) -> Self:
        """Starts the thread."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends the loop."""
        self.stop()

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
    hint = ": call it, as in loop.run(producer.start())" if callable(work) else ", as in loop.run(producer.send(message))"
    return f"run() takes a coroutine, and this is {kind_of(work)}{hint}"
