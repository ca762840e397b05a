"""The lifecycle of a producer or consumer on one event loop, and the context manager that starts and ends it.

A call at the wrong time raises NotRunning.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

from rocketmq_broker.client.errors import NotRunning

Running = TypeVar("Running")


class Lifecycle(Generic[Running]):
    """Tracks three states, each entered once: not started, running on one event loop, shut down.

    Also stores the parts that exist only while the client runs. `running` returns them only on the client's event loop.
    """

    def __init__(self, who: str) -> None:
        """Each error message begins with `who`, for example `producer orders`."""
        self._who = who
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: Running | None = None
        self._is_stopped = False

    @property
    def is_started(self) -> bool:
        """Returns True if the client has been started, even if it has been shut down since."""
        return self._loop is not None

    def require_new(self) -> None:
        """Raises NotRunning if the client has already been started or shut down."""
        if self._is_stopped:
            raise NotRunning(f"{self._who} was shut down and cannot be started again: create a new one")
        if self._loop is not None:
            raise NotRunning(f"{self._who} is already started: start it once")

    @property
    def running_parts(self) -> Running | None:
        """Returns the running parts. May be called on any event loop.

        Returns None before the start and after the shutdown.
        """
        return self._running

    def started(self, running: Running) -> None:
        """Marks the client as running with these parts on the caller's event loop."""
        self._loop = asyncio.get_running_loop()
        self._running = running

    def start_failed(self) -> None:
        """Marks the client as not started. Call this method after the client's parts have stopped."""
        self._loop = self._running = None

    def running(self) -> Running:
        """Returns the running parts. Raises NotRunning unless they run on the caller's event loop."""
        if self._is_stopped:
            raise NotRunning(f"{self._who} is not running: it was shut down")
        if self._running is None:
            raise NotRunning(f"{self._who} is not running: start it first")
        if not self._is_on_its_loop():
            raise NotRunning(self._elsewhere())
        return self._running

    def stop(self) -> Running | None:
        """Marks the client as shut down, and returns the parts to stop; None if it was not running.

        Later starts and sends raise NotRunning. This method itself raises NotRunning if it is called on another event loop.
        """
        if self._loop is not None and not self._is_on_its_loop():
            raise NotRunning(self._elsewhere())
        self._is_stopped = True
        running, self._running = self._running, None
        return running

    def change(self, change: Callable[[], None]) -> None:
        """Calls `change`, a function that modifies data that background tasks read.

        The call is made immediately, or on the client's event loop if this loop runs in another thread. Raises NotRunning after
        the shutdown.
        """
        if self._is_stopped:
            raise NotRunning(f"{self._who} was shut down and can no longer be changed")
        if self._loop is None or self._is_on_its_loop():
            change()
        elif self._loop.is_running():
            self._loop.call_soon_threadsafe(change)
        else:
            raise NotRunning(self._elsewhere())

    def _is_on_its_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _elsewhere(self) -> str:
        return (
            f"{self._who} was called from outside the event loop on which it was started: "
            "start it and use it within one asyncio.run(), or pass its coroutines to one EventLoopThread"
        )


class RunsWithin:
    """Base class for `async with client:`, which starts the client and shuts it down when the block ends."""

    @abstractmethod
    async def start(self) -> None:
        """Starts the client."""

    @abstractmethod
    async def shutdown(self) -> None:
        """Shuts the client down."""

    async def __aenter__(self) -> Self:
        """Starts the client. Raises the errors of `start`, after which the client is not running."""
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Shuts the client down."""
        await self.shutdown()
