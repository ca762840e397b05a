"""A test of a lost COMMIT that takes milliseconds."""

import sqlite3

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import RocketMQ


class Orders:
    """The listener under test. It stores orders, and answers check-backs from the stored orders."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE TABLE orders (transaction_id TEXT PRIMARY KEY, customer TEXT)")

    async def execute_local_transaction(self, message: Message, customer: object) -> LocalTransactionState:
        self.database.execute("INSERT INTO orders VALUES (?, ?)", (message.transaction_id, customer))
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        query = "SELECT 1 FROM orders WHERE transaction_id = ?"
        if self.database.execute(query, (message.transaction_id,)).fetchone():
            return LocalTransactionState.COMMIT_MESSAGE
        return LocalTransactionState.ROLLBACK_MESSAGE


async def test_a_lost_commit_is_settled_by_a_check_back(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("shop", Orders())
    rocketmq.lose_next_decision()
    await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]), "alice")
    assert len(await rocketmq.pending("order-1")) == 1

    await rocketmq.advance(minutes=1)
    assert (await rocketmq.committed("order-1")).text == "a book"
