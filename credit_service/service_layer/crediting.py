"""Credits the orders in the inbox, in the database transaction that removes their messages."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from credit_service.domain.credit import Credit, CreditOutcome
from order_messages import credit_refused, order_cancelled, order_created
from order_messages.credit_refused import CreditRefused
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated
from order_messages.states import EntryKind
from rocketmq_broker.databases.inbox import InboxMessage, ParkMessage
from rocketmq_broker.message import Message, MessageExt
from service_runtime.observing.context import carried_properties, logging_about_message, span_about

S = TypeVar("S", contravariant=True)
"""A session of the credit database."""
TAGS: Final = {kind.TOPIC: kind.TAG for kind in (order_created, order_cancelled)}
"""The tag of the messages of each topic that the service consumes."""

logger = logging.getLogger(__name__)


def entry_of(message: MessageExt | InboxMessage) -> Credit:
    """Returns the ledger entry for a message. Raises UnreadableBody."""
    is_cancelled = message.topic == order_cancelled.TOPIC
    body = (OrderCancelled if is_cancelled else OrderCreated).read(message.body)
    return Credit(
        order_id=body.order_id,
        customer=body.customer,
        amount_cents=body.total_cents,
        message_id=message.message_id,
        transaction_id=message.transaction_id,
        kind=EntryKind.REVERSAL if is_cancelled else EntryKind.CREDIT,
    )


class EntryWriter(Protocol[S]):
    """The part of the ledger that crediting uses. All methods write in the caller's database transaction."""

    def write(self, session: S, credits: Sequence[Credit]) -> list[CreditOutcome]:
        """Writes the missing entries, and adds their points to the balances. Returns the outcomes in the order of `credits`."""

    def annul(self, session: S, credit: Credit) -> None:
        """Closes an order without a credit. Raises HasEntries if the order has entries."""

    def report(self, session: S, message: Message) -> None:
        """Stores a message for the order service. The message is sent after the database commit."""


class HasEntries(Exception):
    """Raised if the order already has entries, so that it cannot be closed without a credit."""


@dataclass(frozen=True, slots=True)
class Crediting(Generic[S]):
    """Writes the credits and reversals of messages."""

    ledger: EntryWriter[S]

    def credit(self, session: S, messages: Sequence[InboxMessage]) -> bool:
        """Writes the entries of the messages (the handler of `Inbox.drain`). Returns False if all entries already existed.

        Raises ParkMessage if an entry contradicts the ledger, or the database's error if the database refuses a row.
        """
        credits = [entry_of(message) for message in messages]
        with span_about(messages, "credit orders"):
            outcomes = self.ledger.write(session, credits)
        for message, credit, outcome in zip(messages, credits, outcomes, strict=True):
            if outcome is CreditOutcome.CONFLICTING:
                raise ParkMessage(f"the {credit.kind} of order {credit.order_id} contradicts the ledger")
            if outcome is CreditOutcome.REFUSED:
                self._report(session, message, credit, "it was refused before")
        return CreditOutcome.CREDITED in outcomes

    def refuse(self, session: S, message: InboxMessage, reason: str) -> None:
        """Closes an order that cannot be credited, so that the order service cancels the order (the saga's compensation).

        Writes a credit and a reversal of zero, and the message to the order service, in one database transaction. Raises
        ParkMessage for a reversal, and HasEntries for an order that contradicts the ledger. A person must resolve these
        cases.
        """
        credit = entry_of(message)
        if credit.kind is not EntryKind.CREDIT:
            raise ParkMessage("a reversal cannot be refused, only a credit")
        self.ledger.annul(session, credit)
        self._report(session, message, credit, "it failed too often")
        with logging_about_message(message):
            logger.error("order %s was refused and will be cancelled: %s", credit.order_id, reason)

    def _report(self, session: S, message: InboxMessage, credit: Credit, reason: str) -> None:
        body = CreditRefused(version=credit_refused.VERSION, order_id=credit.order_id, reason=reason).encode()
        with logging_about_message(message):
            carried = carried_properties()
        topic, tag = credit_refused.TOPIC, credit_refused.TAG
        self.ledger.report(session, Message.of(topic, body, tags=tag, keys=[credit.order_id], user_properties=carried))
