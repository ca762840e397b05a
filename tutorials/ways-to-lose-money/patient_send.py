"""The solution of the exercise: commits first, then repeats the send until the broker has stored the message."""

import asyncio

from rocketmq_broker.client import ClientError, Producer
from tutorials.race.order import Order
from tutorials.race.way import Way


class PatientSend(Way):
    """Repeats the send until it succeeds. The message is lost if the process dies before that."""

    name = "patient-send"
    title = "commit, then send until it works"
    producer: Producer

    async def start(self) -> None:
        self.producer = await self.process.producer("order-producers")

    async def place(self, order: Order) -> None:
        async with self.database.writing(order) as writing:
            writing.store(order)
        self.process.run(self.tell(order))

    async def tell(self, order: Order) -> None:
        while True:
            try:
                await self.producer.send(order.message())
            except ClientError:
                await asyncio.sleep(1)
            else:
                return
