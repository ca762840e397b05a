"""The faults of databases, Redis and Celery in a simulated shop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from lab.simulation.databases.database import SimulatedDatabase
from lab.simulation.databases.rules import OrderRule
from lab.simulation.fault_kinds import FaultKind
from lab.simulation.services.celery_model import OrderFault, TaskFault
from lab.simulation.services.shop import SimulatedShop
from lab.simulation.shapes import ORDERS_DATABASE
from rocketmq_broker.testing.simulation.faults import Effect, FaultInjector
from rocketmq_broker.testing.simulation.plan import PlannedEvent

_TASK_FAULTS: Final = {
    FaultKind.REDIS_LOSE_TASK: TaskFault.IS_LOST,
    FaultKind.REDIS_DOUBLE_TASK: TaskFault.IS_DOUBLED,
    FaultKind.REDIS_LATE_TASK: TaskFault.IS_LATE,
}


class ShopFaults:
    """Applies the faults of one shop. A fault counts as having occurred when it affects a service, not when it is injected."""

    def __init__(self, shop: SimulatedShop) -> None:
        """Creates the faults for this shop. Its databases and Redis must not have faults yet."""
        self._shop = shop
        self._awaited: dict[tuple[str, str], deque[asyncio.Future[None]]] = {}
        shop.fault_observers.append(self._met)

    def effects(self) -> Mapping[str, Effect]:
        """Returns the effect of each kind of fault, for a FaultInjector."""
        return {
            FaultKind.DATABASE_REFUSE: self._refuse,
            FaultKind.DATABASE_HANG: self._hang,
            FaultKind.DATABASE_LOST_ANSWER: self._lose_answer,
            FaultKind.DATABASE_LOCKED: self._lock,
            FaultKind.DATABASE_RULE: self._rule,
            FaultKind.PROCESS_KILL_AT_DATABASE: self._kill_at_database,
            FaultKind.WORKER_KILL_CHILD: self._kill_child,
            FaultKind.REDIS_HANG: self._hang_redis,
            FaultKind.REDIS_AWAY: self._stop_redis,
            FaultKind.WORKER_FAIL_ORDER: self._fail_order,
            FaultKind.REPLICA_OLD_ROWS: self._old_rows,
            **dict.fromkeys(_TASK_FAULTS, self._plan),
        }

    # databases

    async def _refuse(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._database(fault)
        database.faults.refuse(fault.for_s, fault.number("rate"))
        await self._lasts(faults, fault, fault.where, "refuse")

    async def _hang(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._database(fault)
        database.faults.hang(fault.for_s)
        await self._lasts(faults, fault, fault.where, "hang")

    async def _lock(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._database(fault)
        database.lock()
        await self._lasts(faults, fault, fault.where, "locked", database.unlock)

    async def _rule(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._database(fault)
        ends_s, takes_nothing = database.faults.now_s() + fault.for_s, fault.text("about") == "amounts"
        database.faults.rules.append(OrderRule(fault.whole("nth"), ends_s, takes_nothing))
        await self._lasts(faults, fault, fault.where, "rule")

    async def _lose_answer(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._database(fault)
        database.faults.lose_answer(fault.whole("nth"))
        await self._is_met(faults, fault, fault.where, "lost_answer", database.faults.end_all)

    async def _kill_at_database(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        program, has_died = faults.program(fault), asyncio.get_running_loop().create_future()

        def die() -> None:
            faults.has_fired(fault)
            program.kill(fault.for_s)
            if not has_died.done():
                has_died.set_result(None)

        database, is_before = self._shop.database_of(fault.where), fault.text("when") == "before"
        database.faults.die_at(fault.where, fault.whole("nth"), die, is_before=is_before, is_over=has_died.done)
        try:
            await has_died
        finally:
            if has_died.cancelled():
                database.faults.end_all()

    async def _kill_child(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._shop.database_of(fault.where)
        database.faults.die_at(fault.where, fault.whole("nth"), None, is_before=fault.text("when") == "before")
        await self._is_met(faults, fault, database.name, "kill_child", database.faults.end_all)

    async def _old_rows(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Copies the database now. After `age_s` seconds, or 30 s at most, check-backs read the copy."""
        copy = self._shop.replica_of(ORDERS_DATABASE)
        await asyncio.sleep(min(fault.number("age_s"), 30.0))
        service = self._shop.order_services.get(fault.where)
        if service is None or not service.process.is_alive:
            return
        service.check_back_from(copy, faults.once(fault))
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            service.check_back_from(None)

    # Redis

    async def _hang_redis(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._shop.redis.hang(fault.for_s)
        await self._lasts(faults, fault, "redis", "hang")

    async def _stop_redis(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._shop.redis.go_away(fault.for_s)
        await self._lasts(faults, fault, "redis", "away")

    async def _fail_order(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        effect, is_written = OrderFault(fault.text("how")), fault.text("when") == "after"
        self._shop.redis.fail_order(fault.whole("nth"), fault.for_s, effect, is_written=is_written)
        await self._lasts(faults, fault, "redis", "fail_order")

    async def _plan(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        task_fault, delay_s = _TASK_FAULTS[FaultKind(fault.what)], float(fault.parameters.get("delay_s", 0.0))
        self._shop.redis.plan(task_fault, fault.whole("nth"), delay_s)
        await self._is_met(faults, fault, "redis", task_fault.value, self._shop.redis.end_all)

    # internals

    def _database(self, fault: PlannedEvent) -> SimulatedDatabase:
        return self._shop.databases[fault.where]

    async def _lasts(
        self, faults: FaultInjector, fault: PlannedEvent, place: str, word: str, mend: Callable[[], object] | None = None
    ) -> None:
        """Waits until the fault ends, and counts the fault if it affected a service.

        `mend` ends a fault that does not end by itself.
        """
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

    async def _is_met(
        self, faults: FaultInjector, fault: PlannedEvent, place: str, word: str, mend: Callable[[], object]
    ) -> None:
        """Waits until the fault has affected a service. If the wait is cancelled, `mend` removes the fault."""
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

    def _met(self, place: str, word: str) -> None:
        waiting = self._awaited.get((place, word))
        while waiting:
            met = waiting.popleft()
            if not met.done():
                met.set_result(None)
                return
