"""The moment at which an order's life stands still, until somebody is killed or let go on."""

import asyncio

from tutorials.kills.cells import Moment


class Halt:
    """Stops the first process that comes to one moment; the second time nobody stops."""

    def __init__(self, moment: Moment) -> None:
        """Nobody has come there yet."""
        self.reached = asyncio.Event()
        self._moment = moment
        self._over = asyncio.Event()

    async def at(self, moment: Moment) -> None:
        """A process is at this moment: it waits here if this is the one."""
        if moment is self._moment and not self.reached.is_set():
            self.reached.set()
            await self._over.wait()

    def go_on(self) -> None:
        """Whoever waits goes on."""
        self._over.set()
