"""An outbox with a relay: one database commit stores the order and an outbox row, and the relay sends the row as a message."""

import sqlite3

from rocketmq_broker.client import Message, Producer


class Outbox:
    """A database with orders and with an outbox of messages that have not been sent."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE TABLE orders (order_id TEXT PRIMARY KEY, thing TEXT)")
        self.database.execute("CREATE TABLE outbox (number INTEGER PRIMARY KEY, order_id TEXT, thing TEXT)")

    def place(self, order_id: str, thing: str) -> None:
        """Stores both rows with one database commit. Needs no broker."""
        self.database.execute("BEGIN")
        self.database.execute("INSERT INTO orders VALUES (?, ?)", (order_id, thing))
        self.database.execute("INSERT INTO outbox (order_id, thing) VALUES (?, ?)", (order_id, thing))
        self.database.execute("COMMIT")

    async def relay(self, producer: Producer) -> int:
        """Sends a message for each row, oldest first, and returns the number of messages. Call this method repeatedly."""
        rows = self.database.execute("SELECT number, order_id, thing FROM outbox ORDER BY number").fetchall()
        for number, order_id, thing in rows:
            await producer.send(Message.of("orders", thing, keys=[order_id]))
            self.database.execute("DELETE FROM outbox WHERE number = ?", (number,))
        return len(rows)
