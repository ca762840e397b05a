"""The chapter's credit service: a consumer with a SQLite database that stores one credit per order."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, MessageExt, PushConsumer
from tutorials.kills.cells import Moment
from tutorials.kills.halt import Halt
from tutorials.kills.order_service import TOPIC


class CreditService:
    """The credit service from one start to its end. A restart creates a new object, and only the database file survives."""

    def __init__(self, file: Path, namesrv_addr: str, halt: Halt, note_delivery: Callable[[], None]) -> None:
        """Creates the service without starting it. `note_delivery` is called for each message."""
        self.is_dead = False
        self.database = sqlite3.connect(file, isolation_level=None)
        self.database.execute("CREATE TABLE IF NOT EXISTS credits (order_id TEXT PRIMARY KEY, thing TEXT NOT NULL)")
        self._halt = halt
        self._note_delivery = note_delivery
        self._consumer = PushConsumer(
            "credit-service", namesrv_addr=namesrv_addr, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        )

    async def start(self) -> None:
        """Starts the consumer."""
        self._consumer.subscribe(TOPIC)
        self._consumer.register_message_listener(self._listen)
        await self._consumer.start()

    async def end(self) -> None:
        """Stops the consumer and closes the database, as the operating system does when a process ends."""
        self.is_dead = True
        await self._consumer.shutdown(timeout_s=0.5)
        self.database.close()

    async def _listen(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            self._note_delivery()
            await self._pass(Moment.DELIVERED)
            credit = "INSERT INTO credits VALUES (?, ?) ON CONFLICT DO NOTHING"
            self.database.execute(credit, (message.keys[0], message.text))
            await self._pass(Moment.CREDITED)
        return ConsumeStatus.CONSUME_SUCCESS

    async def _pass(self, moment: Moment) -> None:
        await self._halt.at(moment)
        if self.is_dead:
            await asyncio.Event().wait()  # a dead process does nothing
