"""The signal by which a consumer asks listeners to let go of messages that they only hold."""

from __future__ import annotations

import asyncio
import threading

from rocketmq_broker.world import Watch


class Withdrawal(threading.Event):
    """A signal for which listeners wait in threads, or in coroutines of the consumer's event loop, which sets it."""

    def __init__(self, watch: Watch | None = None) -> None:
        """Begins unset. `watch` lets threads wait by the time of the event loop."""
        super().__init__()
        self._watch = watch
        self._coroutines: set[asyncio.Future[None]] = set()

    def set(self) -> None:
        """Ends all waits, present and later."""
        super().set()
        for waiting in self._coroutines:
            if not waiting.done():
                waiting.set_result(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits in a thread, by the time of the consumer's event loop. Returns whether it is set."""
        return super().wait(timeout) if self._watch is None else self._watch.pause(super().wait, timeout)

    async def wait_async(self, seconds: float) -> bool:
        """Waits up to `seconds`, like `wait` in a thread. Returns whether it is set."""
        if self.is_set():
            return True
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._coroutines.add(waiting)
        try:
            async with asyncio.timeout(seconds):
                await waiting
        except TimeoutError:
            pass
        finally:
            self._coroutines.discard(waiting)
        return self.is_set()
