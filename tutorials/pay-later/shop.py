"""A shop for orders that are paid later: the order service's listener and SQLite database, and a broker in virtual time."""

from pathlib import Path

from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.domain.order import Item
from order_service.service_layer.attempt import Attempt, Outcome
from order_service.service_layer.paying import OrderPaying
from order_service.service_layer.placing import OrderPlacing
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import TransactionListeners
from rocketmq_broker.message import Message
from rocketmq_broker.testing.sync import SyncClient, SyncRocketMQ
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database

DEADLINE_MINUTES = 10
BEGIN_MS = 1_800_000_000_000


class Shop:
    """A shop for orders that are paid later. The order service and the broker share the test's clock."""

    def __init__(self, rocketmq: SyncRocketMQ, folder: Path, deadline_minutes: float = DEADLINE_MINUTES) -> None:
        self.rocketmq = rocketmq
        self.engine = open_database(f"sqlite:///{folder}/orders.db", migrations=MIGRATIONS, start_timeout_s=10)
        self.world = World(wall_ns=self.now_ns)
        self.store = SqlOrderStore(self.engine, self.world)
        self.placing = OrderPlacing(self.store, self, round(deadline_minutes * 60_000), self.world.wall_ms, self.world.new_uuid)
        self.paying = OrderPaying(self.store, self.world.wall_ms)
        self.open()

    def now_ns(self) -> int:
        return (BEGIN_MS + round(self.rocketmq.elapsed_s * 1000)) * 1_000_000

    def open(self) -> None:
        """Starts the order service's producer, which answers check-backs."""
        self.producer: SyncClient = self.rocketmq.transaction_producer("order_service", self.listeners())

    def close(self) -> None:
        """Stops the producer, so that check-backs are not answered."""
        self.producer.shutdown()

    def listeners(self) -> TransactionListeners:
        return transaction_listeners(self.store, order_limit_cents=1_000_000, now_ms=self.world.wall_ms)

    def send_in_transaction(self, message: Message, attempt: Attempt) -> Outcome:
        """Sends the half message, runs the local transaction, and sends the decision."""
        self.producer.send_message_in_transaction(message, attempt)
        return attempt.outcome

    def order(self) -> str:
        """Places an order that will be paid later, and returns its id."""
        items = (Item("book", 1, 2599),)
        placed = self.placing.place(customer="ada", items=items, currency="EUR", idempotency_key=None, is_paid_later=True)
        return placed.order.order_id

    def pay(self, order_id: str) -> None:
        self.paying.pay(order_id)

    def state(self, order_id: str) -> str:
        """Returns the order's state in the database."""
        order = self.store.find_order(order_id)
        assert order is not None
        return order.state.value

    def checks(self, order_id: str) -> int:
        """Returns the number of check-backs about a pending order."""
        (transaction,) = self.rocketmq.pending(order_id)
        return transaction.checks
