"""Tests that a listener loses state in memory at a restart, and that a table in the database solves this."""

import runpy
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import RocketMQ

ForgetfulOrders: Any = runpy.run_path(str(Path(__file__).with_name("forgetful.py")))["ForgetfulOrders"]


def mended(orders: type[Any]) -> type[Any]:
    """Returns the exercise's solution: a class that stores the transaction row with the order and keeps no state in memory."""

    class MendedOrders(orders):  # type: ignore[misc]
        def __init__(self, database: sqlite3.Connection) -> None:
            super().__init__(database)
            self.database.execute("CREATE TABLE IF NOT EXISTS transactions (transaction_id TEXT PRIMARY KEY)")

        async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
            self.database.execute("BEGIN")
            self.database.execute("INSERT INTO orders VALUES (?)", (message.keys[0],))
            self.database.execute("INSERT INTO transactions VALUES (?)", (message.transaction_id,))
            self.database.execute("COMMIT")
            return LocalTransactionState.COMMIT_MESSAGE

        async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            query = "SELECT 1 FROM transactions WHERE transaction_id = ?"
            if self.database.execute(query, (message.transaction_id,)).fetchone():
                return LocalTransactionState.COMMIT_MESSAGE
            return LocalTransactionState.ROLLBACK_MESSAGE

    return MendedOrders


async def restarted(rocketmq: RocketMQ, orders: type[Any], *, dies_before_the_order_is_stored: bool) -> sqlite3.Connection:
    """Places an order in a process that is killed, and waits for the check-back in another process.

    Returns the database.
    """
    database = sqlite3.connect(":memory:", isolation_level=None)
    first = orders(database)
    dying = await rocketmq.transaction_producer("shop", first)
    message = Message.of("orders", "a book", keys=["order-1"])
    if dies_before_the_order_is_stored:
        rocketmq.lose_next_answer()  # the half message is stored, and the local transaction never runs
        with pytest.raises(Exception, match="could not be sent"):
            await dying.send_message_in_transaction(message)
    else:
        rocketmq.lose_next_decision()
        await dying.send_message_in_transaction(message)
    await dying.shutdown()
    await rocketmq.transaction_producer("shop", orders(database))
    await rocketmq.advance(minutes=3)
    return database


async def test_a_forgetful_listener_invents_a_credit_for_an_order_that_was_never_stored(rocketmq: RocketMQ) -> None:
    database = await restarted(rocketmq, ForgetfulOrders, dies_before_the_order_is_stored=True)
    assert database.execute("SELECT COUNT(*) FROM orders").fetchone() == (0,)
    await rocketmq.committed("order-1")


@pytest.mark.parametrize("dies_before", [True, False])
async def test_a_listener_that_reads_the_database_is_right_after_a_restart(rocketmq: RocketMQ, dies_before: bool) -> None:
    database = await restarted(rocketmq, mended(ForgetfulOrders), dies_before_the_order_is_stored=dies_before)
    stored = database.execute("SELECT COUNT(*) FROM orders").fetchone()[0]
    delivered = len(await rocketmq.messages("orders"))
    assert stored == delivered == (0 if dies_before else 1)


async def test_to_answer_rollback_for_what_one_forgot_loses_a_paid_order(rocketmq: RocketMQ) -> None:
    class RollsBack(ForgetfulOrders):  # type: ignore[misc]
        async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            known: dict[str | None, LocalTransactionState] = self.states
            return known.get(message.transaction_id, LocalTransactionState.ROLLBACK_MESSAGE)

    database = await restarted(rocketmq, RollsBack, dies_before_the_order_is_stored=False)
    assert database.execute("SELECT COUNT(*) FROM orders").fetchone() == (1,)
    await rocketmq.rolled_back("order-1")
