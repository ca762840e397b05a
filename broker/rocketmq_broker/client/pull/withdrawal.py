"""The signal that ends the waits of listeners when their messages are withdrawn."""

import asyncio
import threading

from rocketmq_broker.world import Watch


class Withdrawal(threading.Event):
    """An event that is set when a listener's messages are withdrawn. Threads and coroutines can wait for it.

    Call `set` only on the consumer's event loop.
    """

    def __init__(self, watch: Watch | None = None) -> None:
        """Creates an unset event. With `watch`, waits in threads are measured with the event loop's clock."""
        super().__init__()
        self._watch = watch
        self._coroutines: set[asyncio.Future[None]] = set()

    def set(self) -> None:
        """Sets the event, which ends all current and later waits."""
        super().set()
        for waiting in self._coroutines:
            if not waiting.done():
                waiting.set_result(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits in a thread for up to `timeout` seconds of the event loop's clock. Returns True if the event is set."""
        return super().wait(timeout) if self._watch is None else self._watch.pause(super().wait, timeout)

    async def wait_async(self, seconds: float) -> bool:
        """Waits in a coroutine for up to `seconds`. Returns True if the event is set."""
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
