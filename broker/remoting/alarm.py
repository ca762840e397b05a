"""A wait that ends when something is due, or sooner if somebody says so."""

from __future__ import annotations

import asyncio


class Alarm:
    """One task waits, anybody on its event loop may ring. An alarm that rings while nobody waits ends the next wait."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Something is due sooner than whoever waits knows."""
        self._rung.set()

    async def wait(self, seconds: float | None) -> None:
        """Returns when the alarm rings, and after that many seconds at the latest; None waits for the alarm alone."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return
        self._rung.clear()
