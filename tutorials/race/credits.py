"""The credit process, which writes each received order to the credit database.

It is the same for all approaches, except that an approach may decide which messages to credit.

The database has two tables. `credits` stores one credit per order, like an idempotent consumer.
`credits_without_key` stores a credit for every message. One run thus shows how an approach affects a consumer with
a unique key and a consumer without one.
"""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, MessageExt, PushConsumer
from tutorials.race.calls import Calls
from tutorials.race.environment import Environment
from tutorials.race.faults import Fault
from tutorials.race.order import CONSUMER_GROUP, TOPIC


class Credits:
    """The credit process from one start to its end. A restart creates a new object."""

    def __init__(self, environment: Environment) -> None:
        """Opens the credit database. The process does not consume yet."""
        self.environment = environment
        self.calls = Calls()
        self.is_dead = False
        self._ledger = sqlite3.connect(environment.credit_file, isolation_level=None)
        self._ledger.executescript(
            """PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
            CREATE TABLE IF NOT EXISTS credits (order_id TEXT PRIMARY KEY, points INTEGER NOT NULL, at_s REAL NOT NULL);
            CREATE TABLE IF NOT EXISTS credits_without_key (order_id TEXT NOT NULL, points INTEGER NOT NULL);"""
        )
        self._consumer: PushConsumer | None = None
        self._is_true: Callable[[str], Awaitable[bool]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def consume_topic(self, is_true: Callable[[str], Awaitable[bool]] | None = None) -> None:
        """Starts a consumer for the messages of all orders.

        `is_true` receives the body of each message. If it returns False, the message is not credited and is redelivered
        later.
        """
        self._is_true = is_true
        consumer = PushConsumer(
            CONSUMER_GROUP,
            namesrv_addr=self.environment.namesrv_addr,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(self._listen)
        await consumer.start()
        self._consumer = consumer

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work in the background until the process ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

    async def credit(self, body: str) -> None:
        """Writes the credit to both tables. Does not return if the process dies."""
        order = json.loads(body)
        row = (order["order_id"], order["total_cents"] // 100)
        self._ledger.execute("BEGIN IMMEDIATE")
        self._ledger.execute("INSERT OR IGNORE INTO credits VALUES (?, ?, ?)", (*row, self.environment.now_s()))
        self._ledger.execute("INSERT INTO credits_without_key VALUES (?, ?)", row)
        self._ledger.execute("COMMIT")
        await self.may_die(order["order_id"])

    async def may_die(self, point: str) -> None:
        """Ends the process if the fault plan kills it at `point`. In that case the call never returns."""
        if self.is_dead or self.environment.plan.strikes(Fault.CONSUMER_DIES, point):
            self.is_dead = True
            await asyncio.Event().wait()

    async def end(self) -> None:
        """Ends the process: cancels its tasks and closes its connections and files, as the operating system does."""
        self.is_dead = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.calls.end()
        if self._consumer is not None:
            await self._consumer.shutdown(timeout_s=0.5)
        self.close()

    def close(self) -> None:
        """Closes the credit database. Uncommitted rows are lost."""
        self._ledger.close()

    async def _listen(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            if self._is_true is not None and not await self._is_true(message.text):
                return ConsumeStatus.RECONSUME_LATER
            await self.credit(message.text)
        return ConsumeStatus.CONSUME_SUCCESS
