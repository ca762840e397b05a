"""A listener that keeps states in memory and returns COMMIT for an unknown transaction, like the official samples."""

import sqlite3

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt


class ForgetfulOrders:
    """Stores orders in a database, but keeps the outcomes of their transactions in memory."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.database.execute("CREATE TABLE IF NOT EXISTS orders (order_id TEXT PRIMARY KEY)")
        self.states: dict[str | None, LocalTransactionState] = {}

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        self.database.execute("INSERT INTO orders VALUES (?)", (message.keys[0],))
        self.states[message.transaction_id] = LocalTransactionState.COMMIT_MESSAGE
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return self.states.get(message.transaction_id, LocalTransactionState.COMMIT_MESSAGE)
