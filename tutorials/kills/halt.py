"""Halts a process at one moment until it is killed or released."""

import asyncio

from tutorials.kills.cells import Moment


class Halt:
    """Halts the first process that reaches a moment."""

    def __init__(self, moment: Moment) -> None:
        """`moment` is the moment at which a process is halted."""
        self.reached = asyncio.Event()
        self._moment = moment
        self._over = asyncio.Event()

    async def at(self, moment: Moment) -> None:
        """Waits if this is the chosen moment. The process that reaches a moment calls it."""
        if moment is self._moment and not self.reached.is_set():
            self.reached.set()
            await self._over.wait()

    def go_on(self) -> None:
        """Releases the halted process."""
        self._over.set()
