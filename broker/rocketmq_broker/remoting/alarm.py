"""A wait that ends when something is due, or sooner if somebody says so."""

from __future__ import annotations

import asyncio


class Alarm:
    """One task waits, anybody on its event loop may ring. An alarm that rings while nobody waits ends the next wait."""

    def __init__(self) -> None:
        self._is_rung = False
        self._waiting: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Something is due sooner than whoever waits knows."""
        self._is_rung = True
        if self._waiting is not None:
            _end(self._waiting)

    async def wait(self, seconds: float | None) -> None:
        """Returns when the alarm rings, and after that many seconds at the latest; None waits for the alarm alone."""
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
