"""The chapter's order service: a SQLite database, and a transaction listener that answers check-backs from it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rocketmq_broker.client import ClientError, LocalTransactionState, Message, MessageExt, TransactionProducer
from tutorials.kills.cells import Moment
from tutorials.kills.halt import Halt
from tutorials.race.order_database import ProcessDied

TOPIC: Final = "orders"
PLACED, REFUSED, UNKNOWN = "placed", "refused", "cannot say"
"""The possible responses to a customer."""
_ANSWERS: Final = {
    LocalTransactionState.COMMIT_MESSAGE: PLACED,
    LocalTransactionState.ROLLBACK_MESSAGE: REFUSED,
    LocalTransactionState.UNKNOWN: UNKNOWN,
}
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS orders (order_id TEXT PRIMARY KEY, thing TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS transactions (transaction_id TEXT PRIMARY KEY, state TEXT NOT NULL);
"""


class OrderService:
    """The order service from one start to its end. A restart creates a new object, and only the database file survives."""

    def __init__(self, file: Path, namesrv_addr: str, halt: Halt, note_check: Callable[[str], None]) -> None:
        """Creates the service without starting it. `note_check` is called with each response to a check-back."""
        self.is_dead = False
        self.database = sqlite3.connect(file, isolation_level=None)
        self.database.executescript(_SCHEMA)
        self._halt = halt
        self._note_check = note_check
        self._producer = TransactionProducer("order-service", self, namesrv_addr=namesrv_addr)

    async def start(self) -> None:
        """Joins the producer group."""
        await self._producer.start()

    async def place(self, order_id: str, thing: str) -> str:
        """Places an order and returns the response to the customer. Raises ProcessDied."""
        await self._pass(Moment.ASKED)
        try:
            sent = await self._producer.send_message_in_transaction(Message.of(TOPIC, thing, keys=[order_id]), thing)
        except ClientError:
            return REFUSED
        return _ANSWERS[sent.local_transaction_state]

    async def execute_local_transaction(self, message: Message, thing: object) -> LocalTransactionState:
        """Stores the order and its transaction row in one local commit."""
        await self._pass(Moment.HALF)
        self.database.execute("BEGIN IMMEDIATE")
        try:
            self.database.execute("INSERT INTO transactions VALUES (?, 'COMMITTED')", (message.transaction_id,))
            self.database.execute("INSERT INTO orders VALUES (?, ?)", (message.keys[0], thing))
        except sqlite3.IntegrityError:  # a check-back was faster, or the order exists
            self.database.execute("ROLLBACK")
            return LocalTransactionState.ROLLBACK_MESSAGE
        self.database.execute("COMMIT")
        await self._pass(Moment.STORED)
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision from the database. Writes the barrier first if the transaction row is missing."""
        barrier = "INSERT OR IGNORE INTO transactions VALUES (?, 'ROLLED_BACK')"
        self.database.execute(barrier, (message.transaction_id,))
        query = "SELECT state FROM transactions WHERE transaction_id = ?"
        ((state,),) = self.database.execute(query, (message.transaction_id,))
        is_stored = state == "COMMITTED"
        self._note_check("COMMIT" if is_stored else "ROLLBACK")
        return LocalTransactionState.COMMIT_MESSAGE if is_stored else LocalTransactionState.ROLLBACK_MESSAGE

    async def end(self) -> None:
        """Closes connections, tasks and files, as the operating system does when a process ends."""
        self.is_dead = True
        await self._producer.shutdown()
        self.database.close()

    async def _pass(self, moment: Moment) -> None:
        await self._halt.at(moment)
        if self.is_dead:
            raise ProcessDied
