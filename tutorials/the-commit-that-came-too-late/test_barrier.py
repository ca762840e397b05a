"""Tests a local transaction that takes longer than the time until the check-back, with and without a barrier."""

import asyncio
import sqlite3

import pytest

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import RocketMQ

COMMIT, ROLLBACK = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE


class SlowOrders:
    """A listener whose local transaction takes 100 seconds, like a slow payment provider."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE TABLE orders (order_id TEXT PRIMARY KEY)")
        self.database.execute("CREATE TABLE transactions (transaction_id TEXT PRIMARY KEY, state TEXT)")

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        await asyncio.sleep(100)
        self.database.execute("BEGIN")
        try:
            self.database.execute("INSERT INTO transactions VALUES (?, 'COMMITTED')", (message.transaction_id,))
            self.database.execute("INSERT INTO orders VALUES (?)", (message.keys[0],))
        except sqlite3.IntegrityError:  # the barrier: this transaction was decided before
            self.database.execute("ROLLBACK")
            return ROLLBACK
        self.database.execute("COMMIT")
        return COMMIT

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        query = "SELECT state FROM transactions WHERE transaction_id = ?"
        found = self.database.execute(query, (message.transaction_id,)).fetchone()
        return COMMIT if found == ("COMMITTED",) else ROLLBACK

    def count(self) -> int:
        return int(self.database.execute("SELECT COUNT(*) FROM orders").fetchone()[0])


class OrdersWithBarrier(SlowOrders):
    """A listener that writes a barrier row if a check-back finds no row."""

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        marker = "INSERT OR IGNORE INTO transactions VALUES (?, 'ROLLED_BACK')"
        self.database.execute(marker, (message.transaction_id,))
        return await super().check_local_transaction(message)


async def place(rocketmq: RocketMQ, orders: SlowOrders) -> int:
    """Places one order and returns the number of messages that consumers received."""
    producer = await rocketmq.transaction_producer("shop", orders)
    await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]))
    await rocketmq.advance(minutes=3)
    return len(await rocketmq.messages("orders"))


async def test_without_the_barrier_a_slow_order_is_stored_and_its_message_never_delivered(rocketmq: RocketMQ) -> None:
    orders = SlowOrders()
    assert (await place(rocketmq, orders), orders.count()) == (0, 1)


async def test_with_the_barrier_a_slow_order_is_neither_stored_nor_delivered(rocketmq: RocketMQ) -> None:
    orders = OrdersWithBarrier()
    assert (await place(rocketmq, orders), orders.count()) == (0, 0)


@pytest.mark.parametrize("immunity_s", [60, 300])
async def test_a_half_message_that_asks_for_patience_is_checked_later(rocketmq: RocketMQ, immunity_s: int) -> None:
    """An order commits only if its CHECK_IMMUNITY_TIME_IN_SECONDS exceeds the duration of its local transaction."""
    orders = OrdersWithBarrier()
    producer = await rocketmq.transaction_producer("shop", orders)
    patience = {"CHECK_IMMUNITY_TIME_IN_SECONDS": str(immunity_s)}
    message = Message.of("orders", "a book", keys=["order-1"]).with_properties(patience)
    await producer.send_message_in_transaction(message)
    await rocketmq.advance(minutes=10)
    is_patient_enough = immunity_s > 100
    assert (len(await rocketmq.messages("orders")), orders.count()) == ((1, 1) if is_patient_enough else (0, 0))
