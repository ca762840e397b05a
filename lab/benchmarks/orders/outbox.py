"""A transactional outbox. The order's transaction stores the message as a row, and a relay sends the message later."""

import asyncio
import logging
import threading
from typing import Final, Protocol

from sqlalchemy import Connection, Engine, LargeBinary, delete
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel, col, select

from order_messages import order_created
from order_service.adapters.local_transaction import ITEMS, ORDER_AND_ITEMS, ORDERS, item_values, order_values, parameters_of
from order_service.adapters.order_store import SqlOrderStore
from order_service.domain.order import Order
from order_service.service_layer.attempt import Attempt, Outcome
from rocketmq_broker.client import ClientError, EventLoopThread, Producer
from rocketmq_broker.message import Message
from rocketmq_broker.world import current_world
from service_runtime.database.columns import ROW_ID
from service_runtime.database.database_errors import DatabaseFailure

BATCH: Final = 100
"""The maximum number of rows that the relay sends in one batch."""
POLL_S: Final = 1.0
AGAIN_S: Final = 1.0
"""The pause of the relay in seconds after a failure."""
_SEND_TIMEOUT_S: Final = 30.0

logger = logging.getLogger(__name__)


class OutboxDatabase(SQLModel, registry=registry()):
    """The base class of the outbox table."""


class OutboxRow(OutboxDatabase, table=True):
    """A message that has not been sent."""

    __tablename__ = "outbox"

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    key: str = Field(max_length=36)
    body: bytes = Field(sa_type=LargeBinary)


_OUTBOX: Final = OutboxDatabase.metadata.tables["outbox"]
_ON_POSTGRESQL: Final = f"""
WITH decided AS (INSERT INTO outbox (key, body) VALUES (%(order_id)s, %(body)s) RETURNING key AS order_id),
{ORDER_AND_ITEMS}"""


class OutboxStore(SqlOrderStore):
    """An order database that also contains an outbox."""

    def __init__(self, engine: Engine) -> None:
        """Creates the outbox table in the database."""
        super().__init__(engine, current_world())
        OutboxDatabase.metadata.create_all(engine)

    def store_with_message(self, order: Order, message: Message) -> None:
        """Stores order, items and message in one transaction. Raises DatabaseUnavailable or OutcomeUnknown."""

        def insert(connection: Connection) -> None:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql(_ON_POSTGRESQL, parameters_of(order) | {"body": message.body})
                return
            connection.execute(_OUTBOX.insert(), {"key": order.order_id, "body": message.body})
            connection.execute(ORDERS.insert(), order_values(order))
            connection.execute(ITEMS.insert(), item_values(order))

        self._sessions.in_one_statement(insert)

    def oldest(self) -> list[OutboxRow]:
        """Returns up to BATCH messages, oldest first."""
        with self._sessions.reading() as session:
            rows = list(session.exec(select(OutboxRow).order_by(col(OutboxRow.id)).limit(BATCH)))
            session.expunge_all()
            return rows

    def forget(self, rows: list[OutboxRow]) -> None:
        """Deletes the rows of messages that were sent."""
        with self._sessions.writing() as session:
            session.execute(delete(OutboxRow).where(col(OutboxRow.id).in_([row.id for row in rows])))


class Relay(Protocol):
    """The interface of the relay, which sends the outbox's messages."""

    def wake(self) -> None:
        """Notifies the relay of a new message."""


class OutboxSender:
    """Replaces the order service's broker. Stores each order together with its message, and wakes the relay."""

    def __init__(self, store: OutboxStore, relay: Relay) -> None:
        """Creates a sender. `relay` sends the messages from the outbox."""
        self._store = store
        self._relay = relay

    def send_in_transaction(self, message: Message, attempt: Attempt) -> Outcome:
        """Stores the order together with its message. Sends no half message and no decision."""
        assert isinstance(attempt.wanted, Order), "the bench places orders and cancels none"
        attempt.begin(attempt.wanted.order_id)
        try:
            self._store.store_with_message(attempt.wanted, message)
        except DatabaseFailure:
            attempt.conclude(Outcome.UNAVAILABLE)
            return attempt.outcome
        attempt.conclude(Outcome.STORED)
        self._relay.wake()
        return attempt.outcome

    def why_unready(self) -> str | None:
        """Returns None, because the service accepts orders without a broker."""
        return None

    def refusing_brokers(self) -> list[str]:
        """Returns an empty list, because there is no broker."""
        return []

    def count_discarded(self) -> int | None:
        """Returns 0, because no message is discarded."""
        return 0


class OutboxRelay:
    """A thread that sends the messages in order and then deletes them. After a crash it may send some messages twice."""

    def __init__(self, store: OutboxStore, *, namesrv_addr: str, is_notified: bool) -> None:
        """Creates the thread, which polls the outbox once a second.

        With `is_notified`, it also polls after each new message of this process.
        """
        self._store = store
        self._is_notified = is_notified
        self._producer = Producer("outbox_relay", namesrv_addr=namesrv_addr)
        self._loop = EventLoopThread()
        self._added = threading.Event()
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay")

    def start(self) -> None:
        """Starts the thread."""
        self._loop.start()
        self._loop.run(self._producer.start(), timeout_s=_SEND_TIMEOUT_S)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread after the current batch."""
        self._is_stopping.set()
        self._added.set()
        self._thread.join()
        self._loop.run(self._producer.shutdown(), timeout_s=_SEND_TIMEOUT_S)
        self._loop.stop()

    def wake(self) -> None:
        """Makes the thread poll the outbox now, if `is_notified` is set."""
        if self._is_notified:
            self._added.set()

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            self._added.clear()
            try:
                while rows := self._store.oldest():
                    self._loop.run(self._send(rows), timeout_s=_SEND_TIMEOUT_S)
                    self._store.forget(rows)
            except (ClientError, DatabaseFailure, TimeoutError) as error:
                logger.warning("the relay retries in %g s: %s", AGAIN_S, error)
                self._is_stopping.wait(AGAIN_S)
                continue
            self._added.wait(POLL_S)

    async def _send(self, rows: list[OutboxRow]) -> None:
        messages = [Message.of(order_created.TOPIC, row.body, tags=order_created.TAG, keys=[row.key]) for row in rows]
        await asyncio.gather(*map(self._producer.send, messages))
