"""What goes wrong with databases, Redis and members of a group in the world of the shop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from rocketmq_broker.testing.simulation.faults import Effect, FaultInjector
from rocketmq_broker.testing.simulation.plan import PlannedEvent
from simulation.databases.database import SimulatedDatabase
from simulation.fault_kinds import FaultKind
from simulation.services.celery_model import TaskFate
from simulation.services.shop import SimulatedShop
from simulation.shapes import CREDITS_DATABASE, INVENTORY_DATABASE, ORDERS_DATABASE


class ShopFaults:
    """The effects of the shop's own kinds of faults, and who counts them when they fire."""

    def __init__(self) -> None:
        """`shop` must be set before the first fault happens."""
        self.shop: SimulatedShop
        self._armed: dict[tuple[str, str], Callable[[], None]] = {}
        self.effects: Mapping[str, Effect] = {
            FaultKind.PROCESS_KILL_AT_DATABASE: self._kill_at_database,
            FaultKind.DATABASE_REFUSE: self._refuse,
            FaultKind.DATABASE_HANG: self._hang,
            FaultKind.DATABASE_LOST_ANSWER: self._lose_answer,
            FaultKind.DATABASE_LOCKED: self._lock,
            FaultKind.REDIS_HANG: self._redis_hangs,
            FaultKind.REPLICA_OLD_ROWS: self._answer_from_copy,
            **dict.fromkeys(_FATES, self._ordain),
        }

    def fired(self, place: str, word: str) -> None:
        """Counts the fault of which a database or Redis says that it had an effect."""
        if (count := self._armed.get((place, word))) is not None:
            count()

    def _arm(self, faults: FaultInjector, fault: PlannedEvent, word: str) -> None:
        self._armed[fault.where, word] = faults.once(fault)

    def _database(self, fault: PlannedEvent) -> SimulatedDatabase:
        return self.shop.databases[fault.where]

    async def _refuse(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._arm(faults, fault, "refuse")
        self._database(fault).faults.refuse(fault.for_s, fault.number("rate"))

    async def _hang(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._arm(faults, fault, "hang")
        self._database(fault).faults.hang(fault.for_s)

    async def _lose_answer(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._arm(faults, fault, "lost_answer")
        self._database(fault).faults.lose_answer(fault.whole("nth"))

    async def _lock(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        faults.has_fired(fault)
        database = self._database(fault)
        database.lock()
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            database.unlock()

    async def _kill_at_database(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        program = faults.program(fault)
        database = self.shop.databases[_database_of(fault.where)]

        def die() -> None:
            faults.has_fired(fault)
            program.kill(fault.for_s)

        if program.process is not None:
            database.faults.die_at(fault.where, fault.whole("nth"), die, is_before=fault.text("when") == "before")

    async def _redis_hangs(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._arm(faults, fault, "hang")
        self.shop.redis.hang(fault.for_s)

    async def _ordain(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        fate = _FATES[FaultKind(fault.what)]
        self._arm(faults, fault, fate.value)
        delay_s = fault.number("delay_s") if "delay_s" in fault.parameters else 0.0
        self.shop.redis.ordain(fate, fault.whole("nth"), delay_s)

    async def _answer_from_copy(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Keeps a copy of this moment, and answers from it some time later: the copy is old then."""
        copy = self.shop.old_copy(ORDERS_DATABASE)
        await asyncio.sleep(min(fault.number("age_s"), fault.for_s))
        service = self.shop.order_services.get(fault.where)
        if service is None or not service.process.is_alive:
            return
        faults.has_fired(fault)
        service.check_back_from(copy)
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            if service.process.is_alive:
                service.check_back_from(None)


def _database_of(program: str) -> str:
    """Returns the name of the database of a service or worker."""
    if program.startswith("orders-"):
        return ORDERS_DATABASE
    return INVENTORY_DATABASE if program.startswith("inventory-") else CREDITS_DATABASE


_FATES: Final[Mapping[FaultKind, TaskFate]] = {
    FaultKind.REDIS_LOSE_TASK: TaskFate.IS_LOST,
    FaultKind.REDIS_DOUBLE_TASK: TaskFate.RUNS_AGAIN,
    FaultKind.REDIS_LATE_TASK: TaskFate.IS_LATE,
    FaultKind.REDIS_RUN_TWICE: TaskFate.RUNS_TWICE_AT_ONCE,
    FaultKind.REDIS_LOST_ACK: TaskFate.ACK_IS_LOST,
}
