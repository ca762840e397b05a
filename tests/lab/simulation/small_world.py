"""Real databases and logs for the tests of the judges.

Three services and their broker write them in one simulation with virtual time, with orders of each kind.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Engine, event, text

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS as CREDIT_MIGRATIONS
from credit_service.service_layer.crediting import Crediting, entry_of
from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import MIGRATIONS as INVENTORY_MIGRATIONS
from inventory_service.service_layer.shipping import Shipping, instruction_of
from lab.simulation.judges.books import WorldBooks, read_books, read_store
from lab.simulation.judges.broker_lists import BrokerLists
from lab.simulation.judges.safety import SafetyJudge
from lab.simulation.judges.violation import Violation
from order_messages import order_cancelled, order_created
from order_messages.body import UnreadableBody
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS as ORDER_MIGRATIONS
from order_service.domain.order import Item
from order_service.service_layer.attempt import Attempt, Outcome, TransactionFailed
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.paying import OrderPaying
from order_service.service_layer.placing import OrderPlacing
from order_service.service_layer.transaction_listener import transaction_listeners
from pipelines.judging.cut_off import CutOff
from rocketmq_broker.client import ConsumeFromWhere, LocalTransactionState, TransactionListener
from rocketmq_broker.databases.inbox import InboxMessage
from rocketmq_broker.message import Message, MessageExt, topics
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.testing import RocketMQ
from rocketmq_broker.testing.tapped import frames
from rocketmq_broker.world import World, current_world
from service_runtime.database.opening import open_database
from service_runtime.inbox.inbox_listener import InboxListener

MINUTE_MS = 60_000
GROUPS = ("credit_service", "inventory_service")


@dataclass
class SmallWorld:
    """The databases and the broker's files after everything is settled. Tests break them."""

    orders: Engine
    credits: Engine
    stock: Engine
    files: dict[Path, bytes] = field(default_factory=dict)
    unsynced: list[tuple[Path, range]] = field(default_factory=list)
    """The parts of files that were not synced at a power failure."""
    lists: BrokerLists = field(default_factory=BrokerLists)
    told: dict[str, str] = field(default_factory=dict)
    now_ms: int = 0

    @property
    def cut_off(self) -> CutOff:
        return CutOff(self.now_ms)

    def read(self) -> WorldBooks:
        return read_books(self.orders, self.credits, self.stock, {"broker-a": read_store(self.files, self.unsynced)})

    def in_orders(self, statement: str, **values: Any) -> None:
        _execute(self.orders, statement, values)

    def in_credits(self, statement: str, **values: Any) -> None:
        _execute(self.credits, statement, values)

    def in_stock(self, statement: str, **values: Any) -> None:
        _execute(self.stock, statement, values)

    def order_id(self, customer: str) -> str:
        """Returns the order id of a customer who has one order."""
        with self.orders.connect() as connection:
            found = connection.execute(text("SELECT order_id FROM orders WHERE customer = :it"), {"it": customer})
            return str(found.scalar_one())


def _execute(engine: Engine, statement: str, values: dict[str, Any]) -> None:
    with engine.begin() as connection:
        assert connection.execute(text(statement), values).rowcount == 1, statement


@dataclass
class _Outbox:
    """An outbox that keeps messages. The world sends them, because its event loop is the producer's."""

    sent: list[tuple[Message, Attempt]] = field(default_factory=list)

    def send_in_transaction(self, message: Message, attempt: Attempt) -> Outcome:
        self.sent.append((message, attempt))
        return Outcome.UNKNOWN


@dataclass
class _LedgerAtOnce:
    """A ledger that credits at once, without Celery."""

    ledger: Ledger
    forgets: Collection[str] = ()
    """Customers whose messages it removes from the inbox, and whose credits it does not write."""

    def drain(self) -> None:
        self.ledger.inbox.drain(self._credit)

    def _credit(self, session: Any, messages: Sequence[InboxMessage]) -> None:
        known = [message for message in messages if entry_of(message).customer not in self.forgets]
        Crediting(self.ledger).credit(session, known)


@dataclass
class _SaysCommit:
    """A listener that always returns COMMIT, whatever the database contains."""

    listener: TransactionListener

    def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState:
        self.listener.execute_local_transaction(message, arg)
        return LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.listener.check_local_transaction(message)
        return LocalTransactionState.COMMIT_MESSAGE


@contextmanager
def databases(folder: Path) -> Iterator[SmallWorld]:
    """Yields the databases of a world before the first order."""
    with ExitStack() as stack:
        engines = []
        for name, migrations in (("orders", ORDER_MIGRATIONS), ("credits", CREDIT_MIGRATIONS), ("stock", INVENTORY_MIGRATIONS)):
            engines.append(open_database(f"sqlite:///{folder}/{name}.db", migrations=migrations, start_timeout_s=10))
            stack.callback(engines[-1].dispose)
        yield SmallWorld(*engines)


@dataclass
class Wrong:
    """The misbehavior of a world's service. The default is none."""

    forgets: Collection[str] = ()
    says_commit: bool = False


class Tap:
    """A tap that passes each frame between clients and broker, and each database commit, to a judge."""

    def __init__(self, safety: SafetyJudge, small: SmallWorld) -> None:
        self.safety, self.small = safety, small
        self.violations: list[Violation] = []
        for name, engine in (("orders", small.orders), ("credits", small.credits), ("stock", small.stock)):
            event.listen(engine, "commit", partial(self._commit_follows, name))

    def stand_before(self, rocketmq: RocketMQ) -> None:
        interceptor = rocketmq._active_interceptor
        self.broker, outgoing = interceptor.broker, interceptor.outgoing

        def watched(transport: Any, peer: str, data: bytes) -> bytes:
            for frame in frames(data):
                self._saw("broker-a", peer, frame)
            return outgoing(transport, peer, data)

        interceptor.broker, interceptor.outgoing = cast(Any, self), cast(Any, watched)
        self.on_connected, self.on_disconnected = self.broker.on_connected, self.broker.on_disconnected

    def on_requests(self, connection: Connection, requests: list[RemotingCommand]) -> None:
        for request in requests:
            self._saw(connection.peer, "broker-a", request.encode())
        self.broker.on_requests(connection, requests)

    def _saw(self, sender: str, receiver: str, frame: bytes) -> None:
        self._look()
        self.violations += self.safety.observe(sender, receiver, frame)

    def _commit_follows(self, name: str, _: Any) -> None:
        self.dirty = getattr(self, "dirty", set()) | {name}

    def _look(self) -> None:
        """Reads the changed databases before the next frame, because SQLAlchemy reports a database commit before it happens."""
        for name in sorted(getattr(self, "dirty", set())):
            with getattr(self.small, name).connect() as connection:
                self.violations += self.safety.observe_commit(name, connection.connection.driver_connection)
        self.dirty: set[str] = set()


async def play(small: SmallWorld, folder: Path, seed: int = 7, tap: Tap | None = None, wrong: Wrong | None = None) -> None:
    """Plays six orders: ada's is placed, bob's COMMIT is lost, cy pays later, dan never pays, eve cancels, fay's lacks stock."""
    settings = {"mapedFileSizeCommitLog": 1 << 20}
    async with RocketMQ(settings, store=folder / "store", seed=seed) as rocketmq:
        if tap is not None:
            tap.stand_before(rocketmq)
        with rocketmq.inside():
            await _Trade(rocketmq, small, current_world(), wrong or Wrong()).all()
            small.now_ms = current_world().wall_ms()
        small.lists = BrokerLists(
            tuple(await rocketmq.pending()), (), tuple(await rocketmq.messages(topics.CHECK_MAX_TIME_TOPIC))
        )
    store = folder / "store"
    small.files = {path: path.read_bytes() for path in store.rglob("*") if path.parent.name in ("commitlog", "config")}


class _Trade:
    def __init__(self, rocketmq: RocketMQ, small: SmallWorld, world: World, wrong: Wrong) -> None:
        self.rocketmq, self.small, self.world, self.wrong = rocketmq, small, world, wrong
        self.store, self.outbox = SqlOrderStore(small.orders, world), _Outbox()
        self.placing = OrderPlacing(self.store, self.outbox, 10 * MINUTE_MS, world.wall_ms, world.new_uuid)
        self.cancelling = OrderCancelling(self.store, self.outbox, world.wall_ms)
        listeners = transaction_listeners(self.store, order_limit_cents=100_000, now_ms=world.wall_ms)
        self.listeners = {
            topic: _SaysCommit(listener) if wrong.says_commit else listener for topic, listener in listeners.items()
        }

    async def all(self) -> None:
        self.producer = await self.rocketmq.transaction_producer("order_service", self.listeners)
        await self._consume()
        SqlStockRoom(self.small.stock, self.world).set_stock("tea", 4)
        await self.place("ada")
        self.rocketmq.lose_next_decision()
        await self.place("bob")
        await self.rocketmq.advance(minutes=3)
        await self.place("cy", is_paid_later=True)
        await self.place("dan", is_paid_later=True)
        OrderPaying(self.store, self.world.wall_ms).pay(self.small.order_id("cy"))
        await self.place("eve")
        await self.rocketmq.advance(minutes=3)
        await self.place("fay")
        await self.rocketmq.advance(minutes=3)
        for customer in ("eve", "fay"):
            await self.cancel(self.small.order_id(customer))
        await self.rocketmq.advance(minutes=40)

    async def place(self, customer: str, *, is_paid_later: bool = False) -> None:
        with suppress(TransactionFailed):
            items = (Item("tea", 1, 250), Item("cup", 2, 399))
            self.placing.place(customer=customer, items=items, currency="EUR", idempotency_key=None, is_paid_later=is_paid_later)
        await self.producer.send_message_in_transaction(*self.outbox.sent.pop())
        self.small.told[self.small.order_id(customer)] = customer

    async def cancel(self, order_id: str) -> None:
        with suppress(TransactionFailed):
            self.cancelling.cancel(order_id, "no longer wanted")
        await self.producer.send_message_in_transaction(*self.outbox.sent.pop())

    async def _consume(self) -> None:
        room = SqlStockRoom(self.small.stock, self.world)
        ledger = Ledger(self.small.credits, self.world)
        at_once = _LedgerAtOnce(ledger, self.wrong.forgets)

        def ship() -> None:
            room.inbox.drain(Shipping(room).ship)
            room.shortages.done([row.key for row in room.shortages.due()])  # the world cancels the order itself

        listeners = (
            InboxListener(read=entry_of, unreadable=UnreadableBody, store=ledger.store, ring=at_once.drain),
            InboxListener(read=instruction_of, unreadable=UnreadableBody, store=room.store, ring=ship),
        )
        for group, listener in zip(GROUPS, listeners, strict=True):
            consumer = await self.rocketmq.consumer(
                group,
                order_created.TOPIC,
                listener,
                tags=order_created.TAG,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            )
            consumer.subscribe(order_cancelled.TOPIC, order_cancelled.TAG)
