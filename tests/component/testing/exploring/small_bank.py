"""A shop and a bank, in correct versions and in versions with a typical bug. Their databases are sets and dicts."""

import asyncio
from collections import Counter
from collections.abc import Callable

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeStatus,
    EventLoopThread,
    LocalTransaction,
    LocalTransactionState,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TransactionProducer,
)
from rocketmq_broker.testing.exploring import ExploredWorld

COMMIT, ROLLBACK = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE


def order(number: int) -> Message:
    """Returns the message of an order."""
    return Message.of("orders", "order is paid", keys=[f"order-{number}"])


class Bank:
    """The programs of a shop and a bank, and their orders and credits, which survive the exit of a program."""

    def __init__(self, world: ExploredWorld) -> None:
        """Creates the databases without orders."""
        self.world = world
        self.orders: set[str] = set()
        self.credits: Counter[str] = Counter()

    def judge(self) -> None:
        """Asserts that each order has exactly one credit, and that there are no other credits."""
        assert self.credits == Counter(self.orders)

    def listener(self, known: set[str]) -> LocalTransaction:
        """Returns a listener that writes and commits an order. At a check-back it commits only orders in `known`."""

        def place(message: Message, arg: object) -> LocalTransactionState:
            self.orders.add(message.keys[0])
            known.add(message.keys[0])
            return COMMIT

        return LocalTransaction(place, lambda message: COMMIT if message.keys[0] in known else ROLLBACK)

    async def shop(self) -> None:
        """Runs a shop whose check-backs read the database."""
        await self._serve(self.listener(self.orders))

    async def forgetful_shop(self) -> None:
        """Runs a shop whose check-backs read the memory of the program."""
        await self._serve(self.listener(set()))

    async def _serve(self, listener: LocalTransaction) -> None:
        async with TransactionProducer("shop", listener) as producer:
            async for number in self.world.requests:
                await producer.send_message_in_transaction(order(number))

    def hasty_shop(self) -> None:
        """Runs a shop that sends the message before it writes the order."""
        with EventLoopThread() as loop, loop.running(Producer("shop")) as producer:
            for number in self.world.requests:
                loop.run(producer.send(order(number)))
                self.world.crash_point()
                self.orders.add(f"order-{number}")

    async def bank(self) -> None:
        """Runs a bank that credits an order once, even if its message is delivered several times."""
        await self._consume(lambda key: self.credits.update({key} - self.credits.keys()))

    async def repeating_bank(self) -> None:
        """Runs a bank that credits an order at each delivery of its message."""
        await self._consume(lambda key: self.credits.update([key]))

    async def _consume(self, credit: Callable[[str], object]) -> None:
        consumer = PushConsumer("bank")

        @consumer.consumes("orders")
        def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            for message in messages:
                credit(message.keys[0])
            return ConsumeStatus.CONSUME_SUCCESS

        await consumer.start()

    async def hasty_bank(self) -> None:
        """Runs a bank that acknowledges messages, and writes their credits every 15 s."""
        waiting: set[str] = set()
        await self._consume(waiting.add)
        while True:
            await asyncio.sleep(15)
            self.credits.update(waiting - self.credits.keys())
