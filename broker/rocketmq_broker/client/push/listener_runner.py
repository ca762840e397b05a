"""The execution of listeners: threads for functions, tasks for async functions."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rocketmq_broker.client.errors import ClientError, NotRunning

T = TypeVar("T")

Job = Callable[[], T | Awaitable[T]]
"""A call of a listener."""


class ListenerNotRun(NotRunning):
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
    def submit(self, job: Job[T], on_done: Callable[[T | None, BaseException | None], None]) -> None:
        """Runs the job, then calls `on_done(result, error)` on the event loop.

        After `stop()` no job runs: the error is ListenerNotRun.
        """

    @abstractmethod
    async def stop(self, timeout_s: float) -> None:
        """Starts no further job, drops waiting ones, and waits up to `timeout_s` for running ones."""

    async def run(self, job: Job[T]) -> T:
        """Runs the job, waits for its result, and raises its error."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error if isinstance(error, Exception) else RuntimeError(f"the listener ended with {error!r}"))
            else:
                done.set_result(result)  # type: ignore[arg-type]

        self.submit(job, settle)
        return await done
