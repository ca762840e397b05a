"""Runs the shop: order service, broker and credit service, with their data on disk."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.message.record import records_of
from rocketmq_broker.testing import RocketMQ
from tutorials.kills.cells import Victim
from tutorials.kills.credit_service import CreditService
from tutorials.kills.halt import Halt
from tutorials.kills.order_service import TOPIC, OrderService

_KINDS: Final = {topics.HALF_TOPIC: "half message", TOPIC: "message", topics.OP_HALF_TOPIC: "op message"}
"""The kinds of the records in the commit log, keyed by topic."""


@dataclass(slots=True)
class Notebook:
    """A record of the services' events. It is kept outside the simulated processes, so that it survives a kill."""

    checks: list[tuple[int, str]] = field(default_factory=list)
    """The answers to check-backs, each with the number of the order service's start, counted from 1."""
    deliveries: list[int] = field(default_factory=list)
    """For each delivery, the number of the credit service's start, counted from 1."""


class Shop:
    """The three processes of the shop, and the files that survive a kill."""

    def __init__(
        self, rocketmq: RocketMQ, folder: Path, halt: Halt, order_service: Callable[..., OrderService] = OrderService
    ) -> None:
        """Prepares the shop with a running broker. `begin` starts the services."""
        self.notebook = Notebook()
        self._rocketmq = rocketmq
        self._namesrv_addr = rocketmq.namesrv_addr
        self._order_file, self._credit_file = folder / "orders.db", folder / "credits.db"
        self._halt = halt
        self._make_order_service = order_service
        self._order_lives = self._credit_lives = 0

    async def begin(self) -> None:
        """Creates the topic, and starts the order service and the credit service."""
        operator = await self._rocketmq.producer("operator")
        await operator.create_topic(TOPIC)
        await self._begin_orders()
        await self._begin_credits()

    async def kill(self, victim: Victim) -> None:
        """Kills the victim's processes. A halted process raises ProcessDied when it is released."""
        if victim is Victim.DISK:
            self._rocketmq.fill_disk()
        if victim.has_broker:
            await self._rocketmq.crash(power=victim is Victim.POWER)
        self.orders.is_dead |= victim.has_order_service
        self.credits.is_dead |= victim.has_credit_service

    async def close_dead_connections(self) -> None:
        """Closes the connections of killed processes."""
        if self.orders.is_dead:
            await self.orders.end()
        if self.credits.is_dead:
            await self.credits.end()

    async def restart(self, victim: Victim) -> None:
        """Restarts killed processes, and frees the space on a full disk."""
        if victim is Victim.DISK:
            self._rocketmq.free_disk()
        if not self._rocketmq.is_running:
            await self._rocketmq.restart()
        if self.orders.is_dead:
            await self._begin_orders()
        if self.credits.is_dead:
            await self._begin_credits()

    async def end(self) -> None:
        """Stops the order service and the credit service."""
        await self.orders.end()
        await self.credits.end()

    def on_disk(self) -> list[str]:
        """Returns the kinds of the records and rows on disk, in the order in which they were written.

        The records are those of the broker's commit log. The rows are those of both databases.
        """
        topics = [record.topic.decode() for record in records_of(self._rocketmq.commit_log())]
        records = [_KINDS[topic] for topic in topics if topic in _KINDS]
        rows = ["order"] * self.count_orders() + ["credit"] * self.count_credits()
        order = ("half message", "order", "message", "op message", "credit")
        return sorted(records + rows, key=order.index)

    def count_orders(self) -> int:
        """Returns the number of stored orders."""
        return _count(self._order_file, "orders")

    def count_credits(self) -> int:
        """Returns the number of stored credits."""
        return _count(self._credit_file, "credits")

    async def _begin_orders(self) -> None:
        self._order_lives += 1
        life = self._order_lives
        self.orders = self._make_order_service(
            self._order_file, self._namesrv_addr, self._halt, lambda answer: self.notebook.checks.append((life, answer))
        )
        await self.orders.start()

    async def _begin_credits(self) -> None:
        self._credit_lives += 1
        life = self._credit_lives
        self.credits = CreditService(
            self._credit_file, self._namesrv_addr, self._halt, lambda: self.notebook.deliveries.append(life)
        )
        await self.credits.start()


def _count(file: Path, table: str) -> int:
    with closing(sqlite3.connect(file)) as database:
        return int(database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])
