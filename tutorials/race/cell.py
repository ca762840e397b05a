"""Runs one approach under one fault: places the orders, waits until all work is done, and compares the databases."""

import asyncio
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rocketmq_broker.client import Producer
from tutorials.race.brokers import RacedBroker
from tutorials.race.credits import Credits
from tutorials.race.environment import Environment
from tutorials.race.faults import Fault, FaultPlan
from tutorials.race.judge import judge
from tutorials.race.order import TOPIC, Order
from tutorials.race.order_database import OrderDatabase, ProcessDied
from tutorials.race.process import Process
from tutorials.race.results.figures import Figures, percentile
from tutorials.race.way import Way

RESTART_TAKES_S: Final = 1.0


async def play(way: type[Way], fault: Fault, *, orders: int, seed: int, folder: Path) -> Figures:
    """Runs an approach under a fault and returns the figures. The databases are created in `folder`, which must be empty.

    In virtual time the same seed always produces the same figures. Raises BrokerCannotRun.
    """
    async with way.broker(seed, folder / "broker") as broker:
        async with Producer("topics", namesrv_addr=broker.namesrv_addr) as topics:
            await topics.create_topic(TOPIC)
        environment = Environment(broker.namesrv_addr, lambda: broker.now_s, FaultPlan(seed, fault, broker.slow_commit_s), folder)
        OrderDatabase.create(environment.order_file, way.schema)
        cell = _Cell(way, broker, environment, seed)
        await cell.begin()
        for number in range(orders):
            await cell.take(number)
        await cell.end()
        return _figures(cell, orders)


class _Cell:
    """The processes and the customers of one run."""

    def __init__(self, way: type[Way], broker: RacedBroker, environment: Environment, seed: int) -> None:
        self.way_class = way
        self.broker = broker
        self.environment = environment
        self.requested_at_s: dict[str, float] = {}
        self.asked_while_down: set[int] = set()
        self._customers = random.Random(f"{seed}/customers")

    async def begin(self) -> None:
        """Starts the credit process and the order process."""
        await self._begin_credits()
        await self._begin_process()

    async def take(self, number: int) -> None:
        """Waits for a random time, applies the faults that are due, and places order `number` as a customer. Ignores errors."""
        await self.broker.pause(self._customers.uniform(*self.way_class.order_every_s))
        await self._restart_dead()
        await self._broker_is_down(self.environment.plan.is_broker_down(number))
        order = Order(number, self._customers.randrange(100, 50_000))
        self.requested_at_s[order.order_id] = self.environment.now_s()
        if not self.broker.is_running:
            self.asked_while_down.add(number)
        if self.environment.plan.strikes(Fault.ANSWER_LOST, order.order_id):
            self.broker.lose_answer_about(order.order_id)
            self.environment.lose_answer()
        if self.environment.plan.strikes(Fault.COMMIT_LOST, order.order_id):
            self.broker.lose_next_decision()
        try:
            await self.way.place(order)
        except ProcessDied:
            pass
        except Exception:
            pass  # the customer gets an error
        if self.environment.plan.strikes(Fault.REDIS_EMPTIED, order.order_id):
            self.environment.task_queue.empty()

    async def end(self) -> None:
        """Ends the faults, waits until all work is done, and stops both processes."""
        self.environment.plan.end()
        await self._broker_is_down(False)
        await self._restart_dead()
        await self.broker.come_to_rest()
        await self.process.end()
        await self.credits.end()

    async def _restart_dead(self) -> None:
        """Restarts killed processes after RESTART_TAKES_S seconds.

        Closes the connections of a killed process first, as the operating system does.
        """
        everything = self.process.is_dead and self.process.kills_everything
        if everything:
            await self._broker_is_down(True)
            self.environment.task_queue.empty()
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
        self.environment.task_queue.is_down = is_down
        if is_down and self.broker.is_running:
            await self.broker.kill()
        elif not is_down and not self.broker.is_running:
            await self.broker.restart()

    async def _begin_process(self) -> None:
        self.process = Process(self.environment)
        self.way = self.way_class(self.process)
        await self.way.start()

    async def _begin_credits(self) -> None:
        self.credits = Credits(self.environment)
        await self.way_class.consume(self.credits)


@contextmanager
def silence() -> Iterator[None]:
    """Suppresses the logs of broker and clients during the block, because the faults cause expected errors."""
    logger = logging.getLogger("rocketmq_broker")
    was = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(was)


def _figures(cell: _Cell, orders: int) -> Figures:
    environment = cell.environment
    verdict = judge(environment.order_file, environment.credit_file, cell.requested_at_s)
    stored = max(1, verdict.stored)
    records = cell.broker.count_records()
    return Figures(
        way=cell.way_class.name,
        fault=environment.plan.fault.value,
        orders=orders,
        struck=environment.plan.struck or len(cell.asked_while_down),
        stored=verdict.stored,
        missing=verdict.missing,
        phantom=verdict.phantom,
        doubled=verdict.doubled,
        asked_while_down=len(cell.asked_while_down),
        taken_while_down=len(cell.asked_while_down & verdict.stored_numbers),
        p50_ms=round(percentile(verdict.latencies_ms, 0.50), 1),
        p99_ms=round(percentile(verdict.latencies_ms, 0.99), 1),
        extra_rows=round((environment.rows_written - verdict.stored) / stored, 2),
        extra_records=round(max(0, records - verdict.stored) / stored, 2),
    )
