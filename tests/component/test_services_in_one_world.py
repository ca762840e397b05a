"""Tests of three services without their HTTP servers, and of their broker, in one process with virtual time and one seed."""

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, inspect, text

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS as CREDIT_MIGRATIONS
from credit_service.service_layer.crediting import Crediting, entry_of
from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import MIGRATIONS as INVENTORY_MIGRATIONS
from inventory_service.service_layer.shipping import Shipping, instruction_of
from order_messages import order_created
from order_messages.body import UnreadableBody
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS as ORDER_MIGRATIONS
from order_service.domain.order import Item
from order_service.service_layer.attempt import Attempt, Outcome, TransactionFailed
from order_service.service_layer.placing import OrderPlacing
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import ConsumeFromWhere
from rocketmq_broker.message import Message
from rocketmq_broker.testing import RocketMQ
from rocketmq_broker.world import World, current_world
from service_runtime.database.opening import open_database
from service_runtime.inbox.inbox_listener import InboxListener

BEGIN_MS = 1_767_225_600_000
"""When time begins where there is a seed."""
MINUTE_MS = 60_000

Rows = list[tuple[str, dict[str, Any]]]
"""Tables and rows."""


@dataclass
class Outbox:
    """A sender that only records messages. The test sends them, because it owns the producer's event loop."""

    sent: list[tuple[Message, Attempt]] = field(default_factory=list)

    def send_in_transaction(self, message: Message, attempt: Attempt) -> Outcome:
        self.sent.append((message, attempt))
        return Outcome.UNKNOWN


def opened(folder: Path, name: str, migrations: str, stack: ExitStack) -> Engine:
    engine = open_database(f"sqlite:///{folder}-{name}.db", migrations=migrations, start_timeout_s=10)
    stack.callback(engine.dispose)
    return engine


def rows(engine: Engine) -> Rows:
    with engine.connect() as connection:
        tables = sorted(set(inspect(engine).get_table_names()) - {"alembic_version"})
        return [(table, dict(row)) for table in tables for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]


def values(rows: Rows, table: str, column: str) -> list[Any]:
    return [row[column] for name, row in rows if name == table]


async def play(folder: Path, seed: int) -> Rows:
    """Places two orders, and loses the COMMIT of one of them. Returns all rows of the three databases."""
    async with RocketMQ(seed=seed) as rocketmq:
        with ExitStack() as stack:
            stack.enter_context(rocketmq.inside())
            world = current_world()
            databases = [
                opened(folder, "orders", ORDER_MIGRATIONS, stack),
                opened(folder, "credits", CREDIT_MIGRATIONS, stack),
                opened(folder, "stock", INVENTORY_MIGRATIONS, stack),
            ]
            await trade(rocketmq, world, *databases)
            return [row for engine in databases for row in rows(engine)]


async def trade(rocketmq: RocketMQ, world: World, orders: Engine, credits: Engine, stock: Engine) -> None:
    store, outbox = SqlOrderStore(orders, world), Outbox()
    placing = OrderPlacing(store, outbox, 10 * MINUTE_MS, world.wall_ms, world.new_uuid)
    listeners = transaction_listeners(store, order_limit_cents=100_000, now_ms=world.wall_ms)
    producer = await rocketmq.transaction_producer("order_service", listeners)
    ledger, room = Ledger(credits, world), SqlStockRoom(stock, world)
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    for group, read, database, handle in (
        ("credit_service", entry_of, ledger, Crediting(ledger).credit),
        ("inventory_service", instruction_of, room, Shipping(room).ship),
    ):
        drain = partial(database.inbox.drain, handle)
        listener = InboxListener(read=read, unreadable=UnreadableBody, store=database.store, ring=drain)
        await rocketmq.consumer(group, order_created.TOPIC, listener, tags=order_created.TAG, consume_from_where=first)
    for _ in range(2):
        with suppress(TransactionFailed):
            placing.place(customer="ada", items=(Item("tea", 1, 250),), currency="EUR", idempotency_key=None)
        await producer.send_message_in_transaction(*outbox.sent.pop())
        await rocketmq.advance(minutes=5)
        rocketmq.lose_next_decision()


async def test_each_time_in_the_databases_is_one_of_the_virtual_world(database_folder: Path) -> None:
    found = await play(database_folder, 7)
    assert len(values(found, "credits", "order_id")) == len(values(found, "shipments", "order_id")) == 2
    first_ms, second_ms = values(found, "orders", "created_at_ms")
    assert second_ms - first_ms == 5 * MINUTE_MS
    times = [(table, name, at_ms) for table, row in found for name, at_ms in row.items() if name.endswith("_at_ms")]
    assert not [time for time in times if time[2] is not None and not BEGIN_MS <= time[2] <= BEGIN_MS + 11 * MINUTE_MS]


async def test_a_seed_makes_the_same_rows_again_and_another_one_makes_other_ids(database_folder: Path) -> None:
    first = await play(database_folder / "first", 7)
    assert first == await play(database_folder / "again", 7)
    other = await play(database_folder / "other", 8)
    assert not set(values(first, "orders", "order_id")) & set(values(other, "orders", "order_id"))
