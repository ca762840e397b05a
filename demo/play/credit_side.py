"""The credit service of a session: its real consumer, inbox and ledger, without threads.

In production, Celery's workers credit the messages in the inbox. Here, the event loop does it in its next turn, with the same
code. The page has no button by which a credit is refused, so that no message to the order service is sent. The consumer does not
save its positions in the credit database, because that would cost ten times as much time in each hour that passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Engine
from sqlmodel import Session

from credit_service.adapters.ledger import CONSUMER, Ledger
from credit_service.service_layer.crediting import TAGS, Crediting, entry_of
from demo.play.mistakes import credit_each_message, drop_unique_key
from demo.play.side import CREDIT_SERVICE, SHORT_ID, PageClientLoop, Surroundings, Tables, rows_of
from order_messages.body import UnreadableBody
from rocketmq_broker.databases.inbox import InboxMessage
from service_runtime.inbox.inbox_listener import InboxListener, inbox_consumer
from service_runtime.messaging.consumer_thread import ConsumerThread


class CreditSide:
    """The credit service, which runs for the whole session."""

    def __init__(self, engine: Engine, around: Surroundings) -> None:
        """`engine` belongs to the migrated credit database. Call `start`."""
        self._engine, self._around = engine, around
        self.has_no_key = False
        """Whether the ledger has lost its unique key. This is a mistake of articles."""
        self._ledger = Ledger(engine, around.world)
        self._crediting: Crediting[Session] = Crediting(self._ledger)
        self._consumer: ConsumerThread | None = None

    def start(self) -> None:
        """Starts a consumer, which joins the group."""
        listener = InboxListener(read=entry_of, unreadable=UnreadableBody, store=self._ledger.store, ring=self._ring)
        loop = PageClientLoop(self._around.loop)
        self._consumer = inbox_consumer(CONSUMER, TAGS, listener, namesrv_addr=self._around.namesrv_addr, loop=loop)
        self._consumer.start()

    def stop(self) -> None:
        """Leaves the consumer group."""
        if self._consumer is not None:
            self._consumer.stop(1.0)
        self._consumer = None

    def lose_key(self) -> None:
        """Makes the mistake: removes the ledger's unique key, and the code that relies on it."""
        drop_unique_key(self._engine)
        self.has_no_key = True

    def tables(self) -> Tables:
        """Returns the rows of the credit database by table."""
        return {table: rows_of(self._engine, table) for table in ("credits", "balances", "rocketmq_inbox")}

    def _ring(self) -> None:
        self._around.loop.call_soon(partial(self._ledger.inbox.drain, self._credit))

    def _credit(self, session: Session, messages: Sequence[InboxMessage]) -> bool:
        if self.has_no_key:
            is_new = credit_each_message(session, messages, self._around.world.wall_ms())
        else:
            is_new = self._crediting.credit(session, messages)
        for message in messages:
            name = entry_of(message).order_id[:SHORT_ID]
            text = f"order {name} is credited" if is_new else f"order {name} was credited before: nothing changes"
            self._around.note(CREDIT_SERVICE, text, "credit")
        return is_new
