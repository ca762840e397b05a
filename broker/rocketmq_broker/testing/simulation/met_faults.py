"""Counts faults that have an effect only when a program meets them, such as a database that hangs."""

import asyncio
from collections import deque
from collections.abc import Callable

from rocketmq_broker.testing.simulation.faults import FaultInjector
from rocketmq_broker.testing.simulation.plan import PlannedEvent


class MetFaults:
    """The faults that wait until they are met. Places call `met` with their name and a word for the fault."""

    def __init__(self) -> None:
        """Creates an empty set of faults."""
        self._awaited: dict[tuple[str, str], deque[asyncio.Future[None]]] = {}

    def met(self, place: str, word: str) -> None:
        """Records that the oldest waiting fault of this place and word has had an effect."""
        waiting = self._awaited.get((place, word))
        while waiting:
            met = waiting.popleft()
            if not met.done():
                met.set_result(None)
                return

    async def lasts(
        self, faults: FaultInjector, fault: PlannedEvent, place: str, word: str, mend: Callable[[], object] | None = None
    ) -> None:
        """Waits until the fault ends, and counts it if it was met. `mend` ends a fault that does not end by itself."""
        met = self._await(place, word)
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            if mend is not None:
                mend()
            if met.done():
                faults.has_fired(fault)
            else:
                self._awaited[place, word].remove(met)

    async def is_met(self, faults: FaultInjector, fault: PlannedEvent, place: str, word: str, mend: Callable[[], object]) -> None:
        """Waits until the fault is met, and counts it. If the wait is cancelled, `mend` removes the fault."""
        met = self._await(place, word)
        try:
            await met
            faults.has_fired(fault)
        finally:
            if not met.done() or met.cancelled():
                mend()

    def _await(self, place: str, word: str) -> asyncio.Future[None]:
        met: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.setdefault((place, word), deque()).append(met)
        return met
