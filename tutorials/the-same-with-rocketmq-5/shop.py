"""The shop with Apache's client for RocketMQ 5: half message, check-back and barrier, and a consumer with receipt handles."""

import atexit
import sqlite3

from rocketmq import (
    ClientConfiguration,
    Credentials,
    FilterExpression,
    Message,
    Producer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

from rocketmq_broker.testing import SyncRocketMQ


class Orders(TransactionChecker):  # type: ignore[misc]
    """The order database and the checker. A row in which `thing` is NULL is the barrier, which marks a rolled-back order."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.database.execute("CREATE TABLE orders (transaction_id TEXT PRIMARY KEY, thing TEXT)")

    def store(self, transaction_id: str, thing: str) -> None:
        """Runs the local transaction. Raises sqlite3.IntegrityError if a check-back came first."""
        self.database.execute("INSERT INTO orders VALUES (?, ?)", (transaction_id, thing))

    def check(self, half: Message) -> TransactionResolution:
        self.database.execute("INSERT OR IGNORE INTO orders VALUES (?, NULL)", (half.message_id,))
        query = "SELECT thing FROM orders WHERE transaction_id = ?"
        (thing,) = self.database.execute(query, (half.message_id,)).fetchone()
        print("check-back finds", thing or "no order")
        return TransactionResolution.COMMIT if thing else TransactionResolution.ROLLBACK


def message(thing: str) -> Message:
    made = Message()
    made.topic, made.body, made.keys = "orders", thing.encode(), thing
    return made


def main() -> None:
    """Sells a book without sending its COMMIT, and tries to sell a lamp after the lamp's check-back."""
    rocketmq = SyncRocketMQ({"grpcServerPort": 0, "transactionTimeOut": 20_000})
    rocketmq.start()
    atexit.register(rocketmq.stop)  # after the clients, which send the broker their metrics as the program ends
    configuration = ClientConfiguration(rocketmq.grpc_endpoint, Credentials())
    orders = Orders()
    producer = Producer(configuration, ("orders",), checker=orders)
    producer.startup()

    book, lamp = (producer.send(message(thing), producer.begin_transaction()) for thing in ("book", "lamp"))
    orders.store(book.message_id, "book")
    print("two half messages, one order, no COMMIT; 20 seconds pass")
    rocketmq.advance(seconds=20)
    rocketmq.wait_until(lambda: not rocketmq.pending())
    try:
        orders.store(lamp.message_id, "lamp")
    except sqlite3.IntegrityError as error:
        print("the lamp comes too late:", error)

    consumer = SimpleConsumer(configuration, "credits", {"orders": FilterExpression()}, 5)
    consumer.startup()
    (first,) = consumer.receive(16, 30)
    print(f"attempt {first.delivery_attempt}: {first.body.decode()}, hidden for 30 seconds, not acknowledged")
    rocketmq.advance(seconds=31)
    (again,) = consumer.receive(16, 30)
    is_new = again.receipt_handle != first.receipt_handle
    print(f"attempt {again.delivery_attempt}: {again.body.decode()}, another receipt handle: {is_new}")
    consumer.ack(again)
    consumer.shutdown()
    producer.shutdown()


if __name__ == "__main__":
    main()
