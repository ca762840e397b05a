"""Tests how messages are handled for each outcome of their entries, with a ledger in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Crediting, HasEntries, entry_of
from order_messages import credit_refused
from order_messages.body import UnreadableBody
from order_messages.credit_refused import CreditRefused
from order_messages.states import EntryKind
from rocketmq_broker.databases.inbox import InboxMessage, InboxStatus, ParkMessage
from rocketmq_broker.message import Message, MessageExt
from service_runtime.observing.context import REQUEST_ID
from tests.component.credit_service.conftest import a_cancellation, a_message, an_order


@dataclass
class LedgerInMemory:
    """A ledger that returns the outcomes chosen by the test, or CREDITED."""

    answers: dict[str, CreditOutcome] = field(default_factory=dict)
    written: list[Credit] = field(default_factory=list)
    annulled: list[str] = field(default_factory=list)
    reported: list[Message] = field(default_factory=list)

    def write(self, session: None, credits: Sequence[Credit]) -> list[CreditOutcome]:
        self.written += credits
        return [self.answers.get(credit.order_id, CreditOutcome.CREDITED) for credit in credits]

    def annul(self, session: None, credit: Credit) -> None:
        if credit.order_id in self.answers:
            raise HasEntries(credit.order_id)
        self.annulled.append(credit.order_id)

    def report(self, session: None, message: Message) -> None:
        self.reported.append(message)

    def reasons(self) -> list[tuple[str, str]]:
        bodies = [CreditRefused.read(message.body) for message in self.reported]
        return [(body.order_id, body.reason) for body in bodies]


def waiting(message: MessageExt) -> InboxMessage:
    """Returns the message as the inbox stores it."""
    return InboxMessage(
        topic=message.topic, body=message.body, properties=message.properties, key=message.message_id, status=InboxStatus.NEW,
        received_at_ms=1, attempts=0, failed_at_ms=None, last_error=None,
    )  # fmt: skip


def test_orders_and_cancellations_become_entries_with_the_ids_of_their_messages() -> None:
    ledger = LedgerInMemory()
    Crediting(ledger).credit(None, [waiting(an_order("1", 1)), waiting(a_cancellation("2", 2))])
    assert [(entry.key, entry.message_id, entry.transaction_id) for entry in ledger.written] == [
        (("1", EntryKind.CREDIT), "id-1", "id-1"), (("2", EntryKind.REVERSAL), "id-2", "id-2"),
    ]  # fmt: skip
    assert ledger.reported == []


def test_the_entry_of_a_delivered_message_is_that_of_the_message_in_the_inbox() -> None:
    order = an_order("1", 1)
    assert entry_of(order) == entry_of(waiting(order))


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"order_id": "1", "customer": "a\\u0000", "total_cents": 1}'])
def test_a_body_without_an_order_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableBody):
        entry_of(a_message(body))


def test_an_order_that_contradicts_the_ledger_is_parked_at_once() -> None:
    crediting = Crediting(LedgerInMemory({"1": CreditOutcome.CONFLICTING}))
    with pytest.raises(ParkMessage, match="the credit of order 1 contradicts the ledger"):
        crediting.credit(None, [waiting(an_order("1"))])
    with pytest.raises(ParkMessage, match="the reversal of order 1 contradicts the ledger"):
        crediting.credit(None, [waiting(a_cancellation("1"))])


def test_a_redelivery_of_a_refused_order_is_reported_again() -> None:
    ledger = LedgerInMemory({"1": CreditOutcome.REFUSED, "2": CreditOutcome.ALREADY_CREDITED})
    Crediting(ledger).credit(None, [waiting(an_order("1", 1)), waiting(an_order("2", 2))])
    assert ledger.reasons() == [("1", "it was refused before")]


def test_a_refusal_closes_the_order_and_reports_it_under_the_request_s_id() -> None:
    ledger = LedgerInMemory()
    Crediting(ledger).refuse(None, waiting(an_order("1", requestId="request-1")), "IntegrityError: no")
    assert ledger.annulled == ["1"]
    assert ledger.reasons() == [("1", "it failed too often")]
    (message,) = ledger.reported
    assert (message.topic, message.tags, message.keys) == (credit_refused.TOPIC, credit_refused.TAG, ("1",))
    assert message.properties[REQUEST_ID] == "request-1"


@pytest.mark.parametrize("reason", ["x" * 500, "DataError: a\ttab, an \x1b[31mescape and a \x7f", ""])
def test_any_reason_can_be_reported(reason: str) -> None:
    ledger = LedgerInMemory()
    Crediting(ledger).refuse(None, waiting(an_order("1")), reason)
    ((order_id, reported),) = ledger.reasons()
    assert (order_id, len(reported) <= 200) == ("1", True)


def test_a_reversal_and_an_order_with_entries_are_not_refused() -> None:
    ledger = LedgerInMemory({"1": CreditOutcome.CONFLICTING})
    with pytest.raises(ParkMessage, match="a reversal cannot be refused, only a credit"):
        Crediting(ledger).refuse(None, waiting(a_cancellation("2")), "no")
    with pytest.raises(HasEntries):
        Crediting(ledger).refuse(None, waiting(an_order("1")), "no")
    assert (ledger.annulled, ledger.reported) == ([], [])
