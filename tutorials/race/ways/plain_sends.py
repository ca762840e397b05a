"""Three approaches that combine a plain message with a database commit.

Each of them can lose a message or send a message without an order.
"""

from rocketmq_broker.client import Producer
from tutorials.race.order import Order
from tutorials.race.way import Way


class _PlainSend(Way):
    producer: Producer

    async def start(self) -> None:
        """Creates the producer."""
        self.producer = await self.process.producer("order-producers")


class SendThenCommit(_PlainSend):
    """Sends the message before it stores the order. If the database commit fails, consumers get a message without an order."""

    name = "send-then-commit"
    title = "send, then commit"

    async def place(self, order: Order) -> None:
        """Sends the message, then stores the order."""
        await self.producer.send(order.message())
        async with self.database.writing(order) as writing:
            writing.store(order)


class CommitThenSend(_PlainSend):
    """Stores the order before it sends the message. If the process dies in between, the message is never sent."""

    name = "commit-then-send"
    title = "commit, then send"

    async def place(self, order: Order) -> None:
        """Stores the order, then sends the message."""
        async with self.database.writing(order) as writing:
            writing.store(order)
        await self.producer.send(order.message())


class SendInsideTheTransaction(_PlainSend):
    """Sends the message within the database transaction. A failed send rolls back the order.

    A failed commit cannot recall the message.
    """

    name = "send-inside"
    title = "send inside the database transaction"

    async def place(self, order: Order) -> None:
        """Stores the order, and sends the message before the database commit."""
        async with self.database.writing(order) as writing:
            writing.store(order)
            await self.producer.send(order.message())
