"""A wait that other code can end early."""

import asyncio


class Alarm:
    """Ends the wait of one task on the same event loop.

    If `ring` is called while the task does not wait, its next wait ends at once.
    """

    def __init__(self) -> None:
        self._is_rung = False
        self._waiting: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Ends the wait. Call it when something is due earlier than the waiting task expects."""
        self._is_rung = True
        if self._waiting is not None:
            _end(self._waiting)

    async def wait(self, seconds: float | None) -> None:
        """Waits until `ring` is called, or for at most `seconds`. If `seconds` is None, the wait has no time limit."""
        if not self._is_rung:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = loop.call_later(seconds, _end, self._waiting) if seconds is not None else None
            try:
                await self._waiting
            finally:
                self._waiting = None
                if timer is not None:
                    timer.cancel()
        self._is_rung = False


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
