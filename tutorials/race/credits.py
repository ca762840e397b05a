"""The credit process, which is the same for every way: it writes what it hears of into the credit database.

It keeps two ledgers. `credits` takes one credit for each order: its consumer is idempotent. `credits_without_key` takes all that
comes. So one run shows what a way does to a consumer with a unique key, and to one without.
"""

import asyncio
import json
import sqlite3
from collections.abc import Coroutine
from typing import Any

from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, MessageExt, PushConsumer
from tutorials.race.faults import Fault
from tutorials.race.order import CONSUMER_GROUP, TOPIC
from tutorials.race.stage import Stage


class Credits:
    """One life of the credit process."""

    def __init__(self, stage: Stage) -> None:
        """Alive; nothing is consumed yet."""
        self.stage = stage
        self.is_dead = False
        self._ledger = sqlite3.connect(stage.credit_file, isolation_level=None)
        self._ledger.executescript(
            """PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
            CREATE TABLE IF NOT EXISTS credits (order_id TEXT PRIMARY KEY, points INTEGER NOT NULL, at_s REAL NOT NULL);
            CREATE TABLE IF NOT EXISTS credits_without_key (order_id TEXT NOT NULL, points INTEGER NOT NULL);"""
        )
        self._consumer: PushConsumer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def consume_topic(self) -> None:
        """Consumes the messages of all orders."""
        consumer = PushConsumer(
            CONSUMER_GROUP, namesrv_addr=self.stage.namesrv_addr, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        )
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(self._listen)
        await consumer.start()
        self._consumer = consumer

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work in the background, as long as the process."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

    async def credit(self, body: str) -> None:
        """Writes the credit; when it returns both ledgers have it. If the process dies, it does not return."""
        order = json.loads(body)
        row = (order["order_id"], order["total_cents"] // 100)
        self._ledger.execute("BEGIN IMMEDIATE")
        self._ledger.execute("INSERT OR IGNORE INTO credits VALUES (?, ?, ?)", (*row, self.stage.now_s))
        self._ledger.execute("INSERT INTO credits_without_key VALUES (?, ?)", row)
        self._ledger.execute("COMMIT")
        await self.may_die(order["order_id"])

    async def may_die(self, point: str) -> None:
        """Where the consumer dies if it does: nothing that comes after it is done."""
        if self.is_dead or self.stage.plan.strikes(Fault.CONSUMER_DIES, point):
            self.is_dead = True
            await asyncio.Event().wait()

    async def end(self) -> None:
        """Takes away what the system takes from a process that ended."""
        self.is_dead = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._consumer is not None:
            await self._consumer.shutdown(timeout_s=0.5)
        self._ledger.close()

    async def _listen(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            await self.credit(message.text)
        return ConsumeStatus.CONSUME_SUCCESS
