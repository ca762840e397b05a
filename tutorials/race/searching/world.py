"""Runs one approach as an explored test, whose programs are the order process, the credit process and Redis."""

import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from rocketmq_broker.testing.exploring import ExploredWorld
from rocketmq_broker.testing.simulation.chance import stream
from tutorials.race.credits import Credits
from tutorials.race.environment import Environment, TaskQueue
from tutorials.race.faults import Fault, FaultPlan
from tutorials.race.judge import Verdict, judge
from tutorials.race.order import Order
from tutorials.race.order_database import DatabaseRefused, OrderDatabase
from tutorials.race.process import Process
from tutorials.race.way import Way

ORDERS: Final = 20
_SLOW: Final = 0.05
"""The share of orders whose local transaction is slow."""
_SLOW_S: Final = (1.0, 12.0)
_DEATHS: Final = frozenset({Fault.DIES_BEFORE_COMMIT, Fault.DIES_AFTER_COMMIT, Fault.CONSUMER_DIES})


def race(way: type[Way], world: ExploredWorld) -> Verdict:
    """Runs an approach in the world and returns the comparison of both databases. The same world gives the same result.

    Raises RuleBroken if a transaction has two outcomes.
    """
    with tempfile.TemporaryDirectory(prefix="race-") as name:
        redis = _Redis()
        folder = Path(name).resolve()
        environment = Environment(world.namesrv_addr, lambda: time.monotonic(), _WorldsFaults(world), folder, redis)
        OrderDatabase.create(environment.order_file, way.schema)
        requested_at_s: dict[str, float] = {}

        async def orders() -> None:
            process = Process(environment)
            world.closed_at_death(process.database)
            started = way(process)
            await started.start()
            async for number in world.requests:
                order = Order(number, 100 * number)
                requested_at_s[order.order_id] = environment.now_s()
                process.run(_placed(started, order))

        async def credits() -> None:
            await way.consume(world.closed_at_death(Credits(environment)))

        async def tasks() -> None:
            world.closed_at_death(redis).is_down = False

        world.run(requests=ORDERS, orders=orders, credits=credits, redis=tasks)
        return judge(environment.order_file, environment.credit_file, requested_at_s)


async def _placed(way: Way, order: Order) -> None:
    with suppress(Exception):  # the customer gets an error
        await way.place(order)


class _Redis(TaskQueue):
    def close(self) -> None:
        """Loses all tasks, and refuses connections until the program runs again."""
        self.is_down = True
        self.empty()


class _WorldsFaults(FaultPlan):
    """A fault plan whose points are those of an explored world, which may kill a process or refuse a transaction there."""

    def __init__(self, world: ExploredWorld) -> None:
        """Creates a plan without faults of its own."""
        super().__init__(0, Fault.NONE, (0.0, 0.0))
        self._world = world

    def strikes(self, fault: Fault, point: str) -> bool:
        """Returns False, unless the world kills the process. Raises DatabaseRefused if the world refuses the transaction."""
        if fault is Fault.DATABASE_REFUSES:
            self._world.may_fail(DatabaseRefused("the database refused the transaction"))
        elif fault in _DEATHS:
            self._world.crash_point()
        return False

    def delay_s(self, point: str) -> float:
        """Returns the additional duration in seconds of a local transaction, which depends on the seed and the order only."""
        chance = stream(self._world.plan.seed, "slow", point)
        return chance.uniform(*_SLOW_S) if chance.random() < _SLOW else 0.0
