"""The effects of planned database faults in a world."""

import asyncio
from collections.abc import Callable, Mapping

from rocketmq_broker.testing.simulation.databases.database import SimulatedDatabase
from rocketmq_broker.testing.simulation.databases.kinds import HANG, KILL_AT_DATABASE, LOCKED, LOST_ANSWER, REFUSE
from rocketmq_broker.testing.simulation.faults import Effect, FaultInjector
from rocketmq_broker.testing.simulation.met_faults import MetFaults
from rocketmq_broker.testing.simulation.plan import PlannedEvent


class DatabaseEffects:
    """Applies the faults of the databases of one world."""

    def __init__(
        self, databases: Mapping[str, SimulatedDatabase], database_of: Callable[[str], SimulatedDatabase], met: MetFaults
    ) -> None:
        """Creates the effects. `database_of` returns the database that counts the steps of a program.

        The databases must call `met.met` with their name when a fault has an effect.
        """
        self._databases = databases
        self._database_of = database_of
        self._met = met

    def effects(self) -> Mapping[str, Effect]:
        """Returns the effect of each kind of fault, for a FaultInjector."""
        return {
            REFUSE: self._refuse,
            HANG: self._hang,
            LOST_ANSWER: self._lose_answer,
            LOCKED: self._lock,
            KILL_AT_DATABASE: self._kill,
        }

    async def _refuse(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._databases[fault.where].faults.refuse(fault.for_s, fault.number("rate"))
        await self._met.lasts(faults, fault, fault.where, "refuse")

    async def _hang(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._databases[fault.where].faults.hang(fault.for_s)
        await self._met.lasts(faults, fault, fault.where, "hang")

    async def _lock(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._databases[fault.where]
        database.lock()
        await self._met.lasts(faults, fault, fault.where, "locked", database.unlock)

    async def _lose_answer(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._databases[fault.where]
        database.faults.lose_answer(fault.whole("nth"))
        await self._met.is_met(faults, fault, fault.where, "lost_answer", database.faults.end_all)

    async def _kill(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        program, has_died = faults.program(fault), asyncio.get_running_loop().create_future()

        def die() -> None:
            faults.has_fired(fault)
            program.kill(fault.for_s)
            if not has_died.done():
                has_died.set_result(None)

        database, is_before = self._database_of(fault.where), fault.text("when") == "before"
        database.faults.die_at(fault.where, fault.whole("nth"), die, is_before=is_before, is_over=has_died.done)
        try:
            await has_died
        finally:
            if has_died.cancelled():
                database.faults.end_all()
