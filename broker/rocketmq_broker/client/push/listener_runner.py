"""What runs listeners: threads for functions, tasks for async functions."""

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
    """The client was shut down before the listener's turn came."""


class ListenerCancelled(ClientError):
    """The client was shut down while the async listener ran, which was cancelled: nobody knows how far it came."""


class NoThreadLeft(ClientError):
    """The system has no thread for the listener, which did not run."""


class ListenerRunner(ABC):
    """Runs listeners, a bounded number at a time. All methods belong to the event loop."""

    unfinished: int
    """Jobs submitted whose outcome has not been handed over yet."""

    @abstractmethod
    def submit(self, job: Job[T], on_done: Callable[[T | None, BaseException | None], None]) -> None:
        """Run the job; `on_done(result, error)` is then called on the event loop.

        After `stop()` nothing is run any more: the error is ListenerNotRun.
        """

    @abstractmethod
    async def stop(self, timeout_s: float) -> None:
        """Begin no further job, and wait at most that long for those that run. What was waiting is dropped."""

    async def run(self, job: Job[T]) -> T:
        """Run the job and wait for its result; what it raises is raised here."""
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
