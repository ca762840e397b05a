"""The credit service of a session, with its real consumer, inbox, ledger and outbox, but without threads.

In production, Celery's workers credit the messages in the inbox, and a thread sends the messages in the outbox.
Here, the next turn of the event loop does both, with the same code. The consumer does not save its positions in the
credit database, because that would make the simulation of each hour ten times slower.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from credit_service.adapters.ledger import CONSUMER, Ledger
from credit_service.adapters.tables import CreditRow
from credit_service.service_layer.crediting import TAGS, Crediting, entry_of
from demo.play.services.mistakes import credit_each_message, drop_unique_key
from demo.play.services.side import CREDIT_SERVICE, DrawnStep, PageClientLoop, Surroundings, Tables, rows_of, short_id
from order_messages.body import UnreadableBody
from order_messages.states import EntryKind
from rocketmq_broker.admin.timeline.event import Arrow
from rocketmq_broker.client import Message, MessageExt
from rocketmq_broker.databases.inbox import InboxMessage, ParkMessage
from service_runtime.inbox.inbox_listener import InboxListener, inbox_consumer
from service_runtime.inbox.outbox import NotSent, OutboxDrain, SenderThread
from service_runtime.messaging.consumer_thread import ConsumerThread

_SEND_TIMEOUT_MS: Final = 3_000
_SEND_AGAIN_S: Final = 10.0
"""The pause after a refusal that the broker did not take. In production it is 1 s, which would fill the page with attempts."""


class CreditSide:
    """The credit service, which runs for the whole session."""

    def __init__(self, engine: Engine, around: Surroundings) -> None:
        """Creates the service without starting it. `engine` connects to the migrated credit database."""
        self._engine, self._around = engine, around
        self.has_no_key = False
        """Whether the ledger has lost its unique key. This is a mistake of articles."""
        self.refuses = False
        """Whether a rule of the ledger refuses the next credit."""
        self._ledger = Ledger(engine, around.world)
        self._crediting: Crediting[Session] = Crediting(self._ledger)
        self._consumer: ConsumerThread | None = None
        self._sender: SenderThread | None = None

    def start(self) -> None:
        """Starts a consumer, which joins the group, and a producer for refusals."""
        listener = InboxListener(read=entry_of, unreadable=UnreadableBody, store=self._keep, ring=self._ring)
        loop, address = PageClientLoop(self._around.loop), self._around.namesrv_addr
        self._sender = SenderThread(CONSUMER, namesrv_addr=address, send_timeout_ms=_SEND_TIMEOUT_MS, loop=loop)
        self._sender.start()
        self._consumer = inbox_consumer(CONSUMER, TAGS, listener, namesrv_addr=address, loop=loop)
        self._consumer.start()

    def stop(self) -> None:
        """Leaves the consumer group."""
        if self._consumer is not None:
            self._consumer.stop(1.0)
        if self._sender is not None:
            self._sender.stop()
        self._consumer = self._sender = None

    def lose_key(self) -> None:
        """Removes the ledger's unique key and stops using the code that relies on it, as one of the mistakes."""
        drop_unique_key(self._engine)
        self.has_no_key = True

    def tables(self) -> Tables:
        """Returns the rows of the credit database, keyed by table name."""
        return {table: rows_of(self._engine, table) for table in ("credits", "balances", "rocketmq_inbox")}

    def _keep(self, messages: Sequence[MessageExt]) -> None:
        self._ledger.store(messages)
        for message in messages:
            self._note(message, f"the message of order {short_id(message.keys[0])} is in the inbox", "inbox")

    def _ring(self) -> None:
        self._around.loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._ledger.inbox.drain(self._credit, give_up=self._refuse)
        if self._ledger.refusals.is_due():
            self._around.loop.call_outside(self._send_refusals)

    def _credit(self, session: Session, messages: Sequence[InboxMessage]) -> bool:
        if self.has_no_key:
            is_new = credit_each_message(session, messages, self._around.world.wall_ms())
        elif self.refuses and any(_is_new(session, message) for message in messages):
            raise ParkMessage("a rule of the ledger refuses the credit")
        else:
            is_new = self._crediting.credit(session, messages)
        for message in messages:
            entry = entry_of(message)
            name = short_id(entry.order_id)
            if is_new:
                self._note(message, f"order {name} is credited", f"{entry.points} points")
            else:
                self._note(message, f"order {name} is in the ledger already: nothing changes", "no change")
        return is_new

    def _refuse(self, session: Session, message: InboxMessage, reason: str) -> None:
        """Closes the order without a credit, and stores the message to the order service (`Inbox.drain`, `give_up`)."""
        self.refuses = False
        self._crediting.refuse(session, message, reason)
        name = short_id(message.keys[0])
        self._note(message, f"the credit of order {name} is refused: the ledger closes the order", "refused", "refused")

    def _send_refusals(self) -> None:
        """Sends what is in the outbox. While the broker does not take it, tries again."""
        if self._sender is None:
            return
        try:
            OutboxDrain(self._ledger.refusals, self._sender.send).send_due()
        except NotSent:
            self._around.loop.call_later(_SEND_AGAIN_S, self._around.loop.call_outside, self._send_refusals)

    def _note(self, message: Message, text: str, label: str, kind: str = "credit") -> None:
        step = DrawnStep(message.transaction_id or "", Arrow(CONSUMER, CONSUMER, label))
        self._around.note(CREDIT_SERVICE, text, kind, step)


def _is_new(session: Session, message: InboxMessage) -> bool:
    """Returns whether the message is of an order that the ledger does not have. A rule refuses only a row that is inserted."""
    entry = entry_of(message)
    rows = select(CreditRow).where(col(CreditRow.order_id) == entry.order_id)
    return entry.kind is EntryKind.CREDIT and session.exec(rows).first() is None
