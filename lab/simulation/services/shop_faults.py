"""The faults of databases, Redis and Celery in a simulated shop."""

import asyncio
import math
from collections.abc import Mapping
from typing import Final

from lab.simulation.databases.rules import OrderRule
from lab.simulation.plans.fault_table import (
    DATABASE_RULE,
    LISTENER_FAIL,
    REDIS_AWAY,
    REDIS_DOUBLE_TASK,
    REDIS_HANG,
    REDIS_LATE_TASK,
    REDIS_LOSE_TASK,
    REPLICA_OLD_ROWS,
    REPLICA_PROMOTED,
    WORKER_FAIL_ORDER,
    WORKER_KILL_CHILD,
    WORKER_NEVER_CREDIT,
)
from lab.simulation.services.celery_model import OrderFault, TaskFault
from lab.simulation.services.listener_fault import ListenerFault
from lab.simulation.services.shop import SimulatedShop
from lab.simulation.shapes import ORDERS_DATABASE
from rocketmq_broker.testing.simulation.databases.effects import DatabaseEffects
from rocketmq_broker.testing.simulation.faults import Effect, FaultInjector
from rocketmq_broker.testing.simulation.met_faults import MetFaults
from rocketmq_broker.testing.simulation.plan import PlannedEvent

_TASK_FAULTS: Final = {
    REDIS_LOSE_TASK: TaskFault.IS_LOST,
    REDIS_DOUBLE_TASK: TaskFault.IS_DOUBLED,
    REDIS_LATE_TASK: TaskFault.IS_LATE,
}


class ShopFaults:
    """Applies the faults of one shop. A fault counts as having occurred when it affects a service, not when it is injected."""

    def __init__(self, shop: SimulatedShop) -> None:
        """Creates the faults for this shop. Its databases and Redis must not have faults yet."""
        self._shop = shop
        self._met = MetFaults()
        shop.fault_observers.append(self._met.met)

    def effects(self) -> Mapping[str, Effect]:
        """Returns the effect of each kind of fault, for a FaultInjector."""
        return {
            **DatabaseEffects(self._shop.databases, self._shop.database_of, self._met).effects(),
            DATABASE_RULE: self._rule,
            WORKER_KILL_CHILD: self._kill_child,
            REDIS_HANG: self._hang_redis,
            REDIS_AWAY: self._stop_redis,
            WORKER_FAIL_ORDER: self._fail_order,
            WORKER_NEVER_CREDIT: self._never_credit,
            REPLICA_OLD_ROWS: self._old_rows,
            REPLICA_PROMOTED: self._old_rows,
            LISTENER_FAIL: self._fail_listener,
            **dict.fromkeys(_TASK_FAULTS, self._plan),
        }

    # databases

    async def _rule(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._shop.databases[fault.where]
        ends_s, takes_nothing = database.faults.now_s() + fault.for_s, fault.text("about") == "amounts"
        database.rules.append(OrderRule(fault.whole("nth"), ends_s, takes_nothing))
        await self._met.lasts(faults, fault, fault.where, "rule")

    async def _kill_child(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        database = self._shop.database_of(fault.where)
        database.faults.die_at(fault.where, fault.whole("nth"), None, is_before=fault.text("when") == "before")
        await self._met.is_met(faults, fault, database.name, "kill_child", database.faults.end_all)

    async def _old_rows(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        """Copies the database now. After `age_s` seconds, or 30 s at most, check-backs use the copy."""
        is_promoted = fault.what == REPLICA_PROMOTED
        copy = self._shop.replica_of(ORDERS_DATABASE, is_promoted=is_promoted)
        await asyncio.sleep(min(fault.number("age_s"), 30.0))
        service = self._shop.order_services.get(fault.where)
        if service is None or not service.process.is_alive:
            return
        service.check_back_from(copy, faults.once(fault), service.process.world.wall_ms() if is_promoted else 0)
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            service.check_back_from(None)

    # Redis

    async def _hang_redis(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._shop.redis.hang(fault.for_s)
        await self._met.lasts(faults, fault, "redis", "hang")

    async def _stop_redis(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        self._shop.redis.go_away(fault.for_s)
        await self._met.lasts(faults, fault, "redis", "away")

    async def _fail_order(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        effect, is_written = OrderFault(fault.text("how")), fault.text("when") == "after"
        self._shop.redis.fail_order(fault.whole("nth"), fault.for_s, effect, is_written=is_written)
        await self._met.lasts(faults, fault, "redis", "fail_order")

    async def _never_credit(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        effect, is_written, redis = OrderFault(fault.text("how")), fault.text("when") == "after", self._shop.redis
        redis.fail_order(fault.whole("nth"), math.inf, effect, is_written=is_written)
        await self._met.is_met(faults, fault, "redis", "fail_order", redis.end_all)

    async def _plan(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        task_fault, delay_s = _TASK_FAULTS[fault.what], float(fault.parameters.get("delay_s", 0.0))
        self._shop.redis.plan(task_fault, fault.whole("nth"), delay_s)
        await self._met.is_met(faults, fault, "redis", task_fault.value, self._shop.redis.end_all)

    # listeners

    async def _fail_listener(self, faults: FaultInjector, fault: PlannedEvent) -> None:
        listener = self._shop.listeners.setdefault(fault.where, ListenerFault())
        listener.begin(fault.text("how"), faults.once(fault))
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            listener.end()
