"""Plays one cell: one way under one fault, order after order, until nothing is left to do; then the judge decides."""

import asyncio
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rocketmq_broker.client import Producer
from tutorials.race.credits import Credits
from tutorials.race.faults import Fault, FaultPlan
from tutorials.race.judge import judge
from tutorials.race.order import TOPIC, Order
from tutorials.race.order_database import OrderDatabase, ProcessDied
from tutorials.race.process import Process
from tutorials.race.results.figures import Figures, percentile
from tutorials.race.stage import Stage
from tutorials.race.way import Way

ORDER_EVERY_S: Final = (0.0, 0.2)
"""Customers come so long after one another, from and to."""
RESTART_TAKES_S: Final = 1.0


async def play(way: type[Way], fault: Fault, *, orders: int, seed: int, folder: Path) -> Figures:
    """Returns the cell's figures. `folder` gets the databases; it must be empty.

    In virtual time the same seed gives the same figures. Raises BrokerCannotRun.
    """
    async with way.broker(seed, folder / "broker") as broker:
        async with Producer("topics", namesrv_addr=broker.namesrv_addr) as topics:
            await topics.create_topic(TOPIC)
        stage = Stage(broker, FaultPlan(seed, fault, broker.slow_commit_s), folder)
        OrderDatabase.create(stage.order_file, way.schema)
        cell = _Cell(way, stage, seed)
        await cell.begin()
        for number in range(orders):
            await cell.take(number)
        await cell.end()
        return _figures(cell, orders)


class _Cell:
    """The stage's processes, and the customers."""

    def __init__(self, way: type[Way], stage: Stage, seed: int) -> None:
        self.way_class = way
        self.stage = stage
        self.requested_at_s: dict[str, float] = {}
        self.asked_while_down: set[int] = set()
        self._customers = random.Random(f"{seed}/customers")

    async def begin(self) -> None:
        """Starts both processes."""
        await self._begin_credits()
        await self._begin_process()

    async def take(self, number: int) -> None:
        """Lets a customer ask for one order, and leave after any answer."""
        await self.stage.broker.pause(self._customers.uniform(*ORDER_EVERY_S))
        await self._raise_the_dead()
        await self._broker_is_down(self.stage.plan.is_broker_down(number))
        order = Order(number, self._customers.randrange(100, 50_000))
        self.requested_at_s[order.order_id] = self.stage.now_s
        if not self.stage.broker.is_running:
            self.asked_while_down.add(number)
        if self.stage.plan.strikes(Fault.ANSWER_LOST, order.order_id):
            self.stage.lose_answer_about(order.order_id)
        if self.stage.plan.strikes(Fault.COMMIT_LOST, order.order_id):
            self.stage.broker.lose_next_decision()
        try:
            await self.way.place(order)
        except ProcessDied:
            pass
        except Exception:
            pass  # the customer sees an error, and leaves
        if self.stage.plan.strikes(Fault.REDIS_EMPTIED, order.order_id):
            self.stage.task_queue.empty()

    async def end(self) -> None:
        """Ends the faults, lets started work finish, and ends both processes."""
        self.stage.plan.end()
        await self._broker_is_down(False)
        await self._raise_the_dead()
        await self.stage.broker.come_to_rest()
        await self.process.end()
        await self.credits.end()

    async def _raise_the_dead(self) -> None:
        """Ends a dead process's connections, as the system does, and starts it again a second later."""
        everything = self.process.is_dead and self.process.kills_everything
        if everything:
            await self._broker_is_down(True)
            self.stage.task_queue.empty()
        if self.process.is_dead:
            await self.process.end()
        if self.credits.is_dead or everything:
            await self.credits.end()
        if self.process.is_dead or self.credits.is_dead:
            await asyncio.sleep(RESTART_TAKES_S)
        if everything:
            await self._broker_is_down(False)
        if self.credits.is_dead:
            await self._begin_credits()
        if self.process.is_dead:
            await self._begin_process()

    async def _broker_is_down(self, is_down: bool) -> None:
        self.stage.task_queue.is_down = is_down
        if is_down and self.stage.broker.is_running:
            await self.stage.broker.kill()
        elif not is_down and not self.stage.broker.is_running:
            await self.stage.broker.restart()

    async def _begin_process(self) -> None:
        self.process = Process(self.stage)
        self.way = self.way_class(self.process)
        await self.way.start()

    async def _begin_credits(self) -> None:
        self.credits = Credits(self.stage)
        await self.way_class.consume(self.credits)


@contextmanager
def silence() -> Iterator[None]:
    """Silences the broker and its clients during the block: faults are the race's normal state."""
    logger = logging.getLogger("rocketmq_broker")
    was = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(was)


def _figures(cell: _Cell, orders: int) -> Figures:
    stage = cell.stage
    verdict = judge(stage.order_file, stage.credit_file, cell.requested_at_s)
    stored = max(1, verdict.stored)
    records = stage.broker.count_records()
    return Figures(
        way=cell.way_class.name,
        fault=stage.plan.fault.value,
        orders=orders,
        struck=stage.plan.struck or len(cell.asked_while_down),
        stored=verdict.stored,
        missing=verdict.missing,
        phantom=verdict.phantom,
        doubled=verdict.doubled,
        asked_while_down=len(cell.asked_while_down),
        taken_while_down=len(cell.asked_while_down & verdict.stored_numbers),
        p50_ms=round(percentile(verdict.latencies_ms, 0.50), 1),
        p99_ms=round(percentile(verdict.latencies_ms, 0.99), 1),
        extra_rows=round((stage.rows_written - verdict.stored) / stored, 2),
        extra_records=round(max(0, records - verdict.stored) / stored, 2),
    )
