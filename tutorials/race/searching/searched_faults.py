"""The faults of the order database and of Redis in a simulated run, as a fault plan."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from rocketmq_broker.testing.simulation.faults import FaultInjector
from rocketmq_broker.testing.simulation.plan import PlannedEvent
from tutorials.race.environment import TaskQueue
from tutorials.race.faults import Fault, FaultPlan
from tutorials.race.searching.drawing import DATABASE_REFUSES, DATABASE_SLOW, REDIS_DOWN, REDIS_EMPTIED


class SearchedFaults(FaultPlan):
    """A fault plan that applies each fault of a simulated run for the fault's duration."""

    def __init__(self, tasks: TaskQueue) -> None:
        """Creates a plan without active faults."""
        super().__init__(0, Fault.NONE, (0.0, 0.0))
        self._tasks = tasks
        self._refusing = 0
        self._delays_s: list[float] = []

    def strikes(self, fault: Fault, point: str) -> bool:
        """Returns True for DATABASE_REFUSES while the database refuses transactions; otherwise False."""
        return fault is Fault.DATABASE_REFUSES and self._refusing > 0

    def delay_s(self, point: str) -> float:
        """Returns the current additional duration in seconds of a local transaction."""
        return max(self._delays_s, default=0.0)

    def effects(self) -> Mapping[str, Any]:
        """Returns the functions that inject faults of the order database and of Redis, keyed by the kind of fault."""
        return {
            DATABASE_REFUSES: self._refuse,
            DATABASE_SLOW: self._slow_down,
            REDIS_DOWN: self._take_redis_down,
            REDIS_EMPTIED: self._empty_redis,
        }

    async def _refuse(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._refusing += 1
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            self._refusing -= 1

    async def _slow_down(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        delay_s = fault.number("delay_s")
        self._delays_s.append(delay_s)
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            self._delays_s.remove(delay_s)

    async def _take_redis_down(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._tasks.is_down = True
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            self._tasks.is_down = False

    async def _empty_redis(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._tasks.empty()
