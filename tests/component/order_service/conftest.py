"""Fixtures for the order service: an order store on SQLite and on PostgreSQL, and a fake broker."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Engine

from order_messages.states import OrderState, TransactionKind
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.domain.history import PROPERTY
from order_service.domain.order import Cancellation, Item, Order
from order_service.service_layer.attempt import Attempt, Outcome, TransactionFailed
from order_service.service_layer.order_store import OrderStore
from order_service.service_layer.transaction_listener import DatabaseTransactionListener, transaction_listeners
from rocketmq_broker.client import LocalTransactionState, TransactionListener
from rocketmq_broker.message import Message
from rocketmq_broker.message.properties import UNIQUE_KEY
from rocketmq_broker.world import World
from service_runtime.database.database_errors import OutcomeUnknown

ORDER_LIMIT_CENTS = 100_000
PLACED_AT_MS = 1_700_000_000_000
DEADLINE_MS = PLACED_AT_MS + 600_000


class BrokerInProcess:
    """A fake broker that runs local transactions as the client does, and records messages and decisions."""

    def __init__(self, listeners: Mapping[str, TransactionListener], witness: Callable[[], str] = lambda: "") -> None:
        self.listeners = listeners
        self.witness = witness
        self.is_up = True
        self.discarded: int | None = 0
        self.refusing: list[str] = []
        self.decisions: list[tuple[Message, LocalTransactionState]] = []

    def send_in_transaction(self, message: Message, attempt: Attempt) -> Outcome:
        if not self.is_up:
            return Outcome.NOT_STARTED
        sent = message.with_properties({UNIQUE_KEY: f"{len(self.decisions) + 1:032X}", PROPERTY: self.witness()})
        self.decisions.append((sent, self.listeners[sent.topic].execute_local_transaction(sent, attempt)))
        return attempt.outcome

    def why_unready(self) -> str | None:
        return None if self.is_up else "the broker is away"

    def refusing_brokers(self) -> list[str]:
        return self.refusing

    def count_discarded(self) -> int | None:
        return self.discarded


@pytest.fixture
def migrations() -> str:
    return MIGRATIONS


@pytest.fixture
def store(engine: Engine) -> SqlOrderStore:
    return SqlOrderStore(engine, World())


@pytest.fixture
def sqlite_store(sqlite_engine: Engine) -> SqlOrderStore:
    return SqlOrderStore(sqlite_engine, World())


@pytest.fixture
def listener(sqlite_store: SqlOrderStore) -> DatabaseTransactionListener:
    return a_listener_on(sqlite_store)


@pytest.fixture
def broker(sqlite_store: SqlOrderStore) -> BrokerInProcess:
    listeners = transaction_listeners(sqlite_store, order_limit_cents=ORDER_LIMIT_CENTS, now_ms=World().wall_ms)
    return BrokerInProcess(listeners, sqlite_store.history.witness)


def an_order(order_id: str = "order-1", *, customer: str = "ada", key: str | None = None, price_cents: int = 1250) -> Order:
    return Order(
        order_id=order_id,
        customer=customer,
        items=(Item("tea", 2, price_cents), Item("cup", 1, 990)),
        currency="EUR",
        created_at_ms=PLACED_AT_MS,
        idempotency_key=key,
    )


def a_later_order(order_id: str = "order-1", *, key: str | None = None) -> Order:
    """Returns an order that awaits its payment."""
    return replace(an_order(order_id, key=key), state=OrderState.AWAITING_PAYMENT, pay_until_ms=DEADLINE_MS)


def a_cancellation(order: Order | None = None) -> Cancellation:
    return Cancellation(order=order or an_order(), reason="by the customer", cancelled_at_ms=PLACED_AT_MS + 1)


def a_listener_on(store: OrderStore, now_ms: Callable[[], int] = World().wall_ms) -> DatabaseTransactionListener:
    return DatabaseTransactionListener(TransactionKind.ORDER, store, order_limit_cents=ORDER_LIMIT_CENTS, now_ms=now_ms)


def lose_connection(*_: object) -> None:
    """Simulates a connection that is lost while the database commits."""
    raise OutcomeUnknown("server closed the connection at COMMIT")


def are_stored_at_once(store: Callable[[int], None], count: int) -> list[bool]:
    """Calls the function with each number in a thread of its own. Returns for each call whether its transaction was stored."""
    start = threading.Barrier(count)

    def run(number: int) -> bool:
        start.wait()
        try:
            store(number)
        except TransactionFailed:
            return False
        return True

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))
