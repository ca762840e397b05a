"""An outbox and its relay: the order and the row "to be sent" are stored by one database commit, and a relay sends the row."""

import sqlite3

from rocketmq_broker.client import Message, Producer


class Outbox:
    """Orders, and the messages that are still to be sent."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE TABLE orders (order_id TEXT PRIMARY KEY, thing TEXT)")
        self.database.execute("CREATE TABLE outbox (number INTEGER PRIMARY KEY, order_id TEXT, thing TEXT)")

    def place(self, order_id: str, thing: str) -> None:
        """Stores both rows by one database commit, without a broker."""
        self.database.execute("BEGIN")
        self.database.execute("INSERT INTO orders VALUES (?, ?)", (order_id, thing))
        self.database.execute("INSERT INTO outbox (order_id, thing) VALUES (?, ?)", (order_id, thing))
        self.database.execute("COMMIT")

    async def relay(self, producer: Producer) -> int:
        """Sends a message for each row, the oldest first, and returns their number. Call it repeatedly."""
        rows = self.database.execute("SELECT number, order_id, thing FROM outbox ORDER BY number").fetchall()
        for number, order_id, thing in rows:
            await producer.send(Message.of("orders", thing, keys=[order_id]))
            self.database.execute("DELETE FROM outbox WHERE number = ?", (number,))
        return len(rows)
