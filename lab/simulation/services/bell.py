"""A bell that calls a function when it is rung, and also once a second, in simulated time."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from redis import RedisError

from rocketmq_broker.testing.simulation.process import SimulatedProcess
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.inbox.bell_thread import LOOKS_EVERY_S
from service_runtime.inbox.outbox import NotSent


class SimulatedBell:
    """The counterpart of `service_runtime.inbox.bell_thread.BellThread` without a thread. It ends with its process."""

    def __init__(self, process: SimulatedProcess, answer: Callable[[], bool | None], *, has_work: Callable[[], bool]) -> None:
        """Creates a bell that calls `answer`. If `answer` returns True, the bell calls it again immediately.

        `has_work` returns False if `answer` would have nothing to do. The call is then skipped, so that the simulation runs
        faster.
        """
        self._process, self._answer, self._has_work = process, answer, has_work
        self._rung = asyncio.Event()

    def start(self) -> None:
        """Starts the calls."""
        self._process.run(self._run())

    def ring(self) -> None:
        """Requests a call, and returns without waiting for it."""
        self._rung.set()

    async def _run(self) -> None:
        while True:
            self._rung.clear()
            has_more: bool | None = False
            if self._has_work():
                with suppress(DatabaseFailure, NotSent, RedisError):
                    has_more = await self._process.start_thread(self._answer)
            if not has_more:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOKS_EVERY_S):
                        await self._rung.wait()
