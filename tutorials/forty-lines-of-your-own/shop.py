"""A shop in forty lines: a producer, a listener that keeps orders in SQLite, and a consumer."""

import asyncio
import sqlite3

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import RocketMQ


class Orders:
    """The transaction listener."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE TABLE orders (transaction_id TEXT PRIMARY KEY, thing TEXT)")

    async def execute_local_transaction(self, message: Message, thing: object) -> LocalTransactionState:
        self.database.execute("INSERT INTO orders VALUES (?, ?)", (message.transaction_id, thing))
        return LocalTransactionState.UNKNOWN  # as if the outcome were not known yet

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        query = "SELECT thing FROM orders WHERE transaction_id = ?"
        found = self.database.execute(query, (message.transaction_id,)).fetchone()
        print(f"check {message.transaction_check_times} finds {found}")
        return LocalTransactionState.COMMIT_MESSAGE if found else LocalTransactionState.UNKNOWN


async def credit(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    """Prints a credit for each message."""
    print("credit for", *[message.text for message in messages])
    return ConsumeStatus.CONSUME_SUCCESS


async def main() -> None:
    """Sells a book: runs the producer and the consumer."""
    async with RocketMQ() as rocketmq:
        producer = await rocketmq.transaction_producer("shop", Orders())
        await producer.create_topic("orders")
        await rocketmq.consumer("credits", "orders", credit)
        await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]), "a book")
        print("a minute passes")
        await rocketmq.advance(minutes=1)
        print(rocketmq.timeline("order-1"))


if __name__ == "__main__":
    asyncio.run(main())
