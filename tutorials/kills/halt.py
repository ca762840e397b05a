"""Halts a process at a chosen moment, until the process is killed or released."""

import asyncio

from tutorials.kills.cells import Moment


class Halt:
    """Halts the first process that reaches the chosen moment."""

    def __init__(self, moment: Moment) -> None:
        """Creates a halt at `moment`."""
        self.reached = asyncio.Event()
        self._moment = moment
        self._over = asyncio.Event()

    async def at(self, moment: Moment) -> None:
        """Reports that the calling process has reached `moment`. Waits for `go_on` when the chosen moment is first reached."""
        if moment is self._moment and not self.reached.is_set():
            self.reached.set()
            await self._over.wait()

    def go_on(self) -> None:
        """Releases the halted process."""
        self._over.set()
