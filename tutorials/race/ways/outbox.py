"""The outbox pattern: one database commit stores the order with an outbox row, and a relay sends the row as a message."""

import asyncio
from typing import Final

from rocketmq_broker.client import ClientError, Producer
from tutorials.race.order import Order
from tutorials.race.order_database import DatabaseRefused
from tutorials.race.way import Way

POLL_S: Final = 1.0
SAFETY_POLL_S: Final = 10.0
BATCH: Final = 100


class OutboxPolled(Way):
    """Polls the outbox every second with a relay.

    The relay sends a row twice if the process dies after it has sent the row and before it has marked the row as sent.
    """

    name = "outbox-polled"
    title = "outbox, polled"
    schema = "CREATE TABLE outbox (number INTEGER PRIMARY KEY, is_sent INTEGER NOT NULL DEFAULT 0);"
    pause_s = POLL_S
    producer: Producer

    async def start(self) -> None:
        """Creates the producer and starts the relay, which also sends rows of an earlier process."""
        self.producer = await self.process.producer("order-relay")
        self.filled = asyncio.Event()
        self.process.run(self._relay())

    async def place(self, order: Order) -> None:
        """Stores the order and its outbox row in one commit. Needs no broker."""
        async with self.database.writing(order) as writing:
            writing.store(order)
            writing.execute("INSERT INTO outbox (number) VALUES (?)", (order.number,))

    async def _relay(self) -> None:
        while True:
            try:
                for order in self._unsent():
                    await self.producer.send(order.message())
                    async with self.database.writing("relay") as writing:
                        writing.execute("UPDATE outbox SET is_sent = 1 WHERE number = ?", (order.number,))
            except (ClientError, DatabaseRefused):
                pass  # the row remains, and the next round sends it
            await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(self.pause_s)

    def _unsent(self) -> list[Order]:
        found = self.database.query(
            "SELECT number, total_cents FROM outbox JOIN orders USING (number) WHERE is_sent = 0 ORDER BY number LIMIT ?",
            (BATCH,),
        )
        return [Order(*row) for row in found]


class OutboxNotified(OutboxPolled):
    """Wakes the relay at each write to the outbox, like LISTEN and NOTIFY of PostgreSQL.

    The relay also polls every 10 s, in case a notification is lost.
    """

    name = "outbox-notified"
    title = "outbox, notified"

    async def place(self, order: Order) -> None:
        """Stores the order and its outbox row, and wakes the relay."""
        await super().place(order)
        self.filled.set()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(SAFETY_POLL_S):
                await self.filled.wait()
        except TimeoutError:
            pass
        self.filled.clear()
