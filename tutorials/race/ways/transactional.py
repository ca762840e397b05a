"""Three approaches with a transactional message. They differ in the listener's method for check-backs."""

import sqlite3
from typing import Any

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt, TransactionProducer
from tutorials.race.brokers import ApacheBroker, ApacheFiveBroker
from tutorials.race.order import Order
from tutorials.race.order_database import DatabaseRefused
from tutorials.race.way import Way

COMMIT = LocalTransactionState.COMMIT_MESSAGE
ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE


class OrderNotTaken(Exception):
    """Raised if the order is not stored, or if its state is unknown."""


class _Transactional(Way):
    producer: TransactionProducer

    async def start(self) -> None:
        """Creates the producer with this object as its listener."""
        self.producer = await self.process.transaction_producer("order-producers", self)

    async def place(self, order: Order) -> None:
        """Sends the half message. The client runs the local transaction and sends the decision. Raises OrderNotTaken."""
        sent = await self.producer.send_message_in_transaction(order.message(), order)
        if sent.local_transaction_state is not COMMIT:
            raise OrderNotTaken(sent.local_transaction_state.name)

    async def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState:
        """Stores the order and returns the decision."""
        raise NotImplementedError

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision of an earlier local transaction."""
        raise NotImplementedError


class StateInMemory(_Transactional):
    """Keeps the states of transactions in memory. Returns COMMIT for an unknown transaction, as Apache's sample does."""

    name = "state-in-memory"
    title = "transactional, state in memory"

    async def start(self) -> None:
        """Creates the producer. The states of earlier processes are lost."""
        self.states: dict[str | None, LocalTransactionState] = {}
        await super().start()

    async def execute_local_transaction(self, message: Message, arg: Order) -> LocalTransactionState:
        """Stores the order and keeps the decision in memory."""
        try:
            async with self.database.writing(arg) as writing:
                writing.store(arg)
        except DatabaseRefused:
            self.states[message.transaction_id] = ROLLBACK
            return ROLLBACK
        self.states[message.transaction_id] = COMMIT
        return COMMIT

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision in memory, or COMMIT for an unknown transaction."""
        return self.states.get(message.transaction_id, COMMIT)


class WithoutBarrier(_Transactional):
    """Stores a transaction row with the order. Returns ROLLBACK at a check-back if the row is missing."""

    name = "without-barrier"
    title = "transactional, database, no barrier"
    schema = "CREATE TABLE transactions (transaction_id TEXT PRIMARY KEY, state TEXT NOT NULL);"

    async def execute_local_transaction(self, message: Message, arg: Order) -> LocalTransactionState:
        """Stores the order and its transaction row with one database commit."""
        try:
            async with self.database.writing(arg) as writing:
                writing.execute("INSERT INTO transactions VALUES (?, 'COMMITTED')", (message.transaction_id,))
                writing.store(arg)
        except (DatabaseRefused, sqlite3.IntegrityError):
            return ROLLBACK
        return COMMIT

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Returns COMMIT if the row exists, else ROLLBACK.

        A row may be missing because the local transaction is still running.
        """
        found = self.database.query("SELECT state FROM transactions WHERE transaction_id = ?", (message.transaction_id,))
        return COMMIT if found else ROLLBACK


class WithBarrier(WithoutBarrier):
    """Uses a barrier: a check-back that finds no row writes ROLLED_BACK, so that a late local transaction fails."""

    name = "with-barrier"
    title = "transactional, database and barrier"

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        """Writes ROLLED_BACK if the row is missing, and returns the decision in the row.

        If the database refuses the write, the client responds to the broker with UNKNOWN.
        """
        async with self.database.writing("check-back") as writing:
            writing.execute("INSERT OR IGNORE INTO transactions VALUES (?, 'ROLLED_BACK')", (message.transaction_id,))
            query = "SELECT state FROM transactions WHERE transaction_id = ?"
            [(state,)] = writing.execute(query, (message.transaction_id,))
        return COMMIT if state == "COMMITTED" else ROLLBACK


class WithBarrierOnApache(WithBarrier):
    """Uses the same barrier on Apache's broker."""

    name = "with-barrier-on-apache"
    title = f"the same, on Apache RocketMQ {ApacheBroker.version}"
    broker = ApacheBroker


class WithBarrierOnApacheFive(WithBarrier):
    """Uses the same barrier on RocketMQ 5, which may deliver a committed message twice. The unique key rejects the duplicate."""

    name = "with-barrier-on-apache-5"
    title = f"the same, on Apache RocketMQ {ApacheFiveBroker.version}"
    broker = ApacheFiveBroker
