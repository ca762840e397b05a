"""The moment at which an order's life stops, until a process is killed or may go on."""

import asyncio

from tutorials.kills.cells import Moment


class Halt:
    """Stops the first process that reaches one moment, and no later one."""

    def __init__(self, moment: Moment) -> None:
        """Starts with no process at the moment."""
        self.reached = asyncio.Event()
        self._moment = moment
        self._over = asyncio.Event()

    async def at(self, moment: Moment) -> None:
        """Waits here if this is the moment. Call it in the process that reaches one."""
        if moment is self._moment and not self.reached.is_set():
            self.reached.set()
            await self._over.wait()

    def go_on(self) -> None:
        """Lets the waiting process go on."""
        self._over.set()
