from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessagesWithdrawn
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.message.record import Record, to_message
from service_runtime.database.database_errors import DatabaseUnavailable, OutcomeUnknown
from service_runtime.inbox.inbox_listener import DEAD_LETTERS_AT_ONCE, InboxListener


class Unreadable(Exception):
    pass


def a_message(number: int, body: bytes = b"{}") -> MessageExt:
    properties = f"UNIQ_KEY\x01id-{number}".encode()
    return to_message(Record(0, 0, 0, 0, number, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, b"orders", properties))


def read(message: MessageExt) -> object:
    if message.body == b"{":
        raise Unreadable("its body ends too early")
    return message


@dataclass(slots=True)
class Inbox:
    """Stores messages; these errors come first."""

    errors: list[Exception] = field(default_factory=list)
    stored: list[list[str]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def store(self, messages: Sequence[MessageExt]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.stored.append([message.message_id for message in messages])
        self.events.append("stored")

    def ring(self) -> None:
        self.events.append("rung")


@dataclass(slots=True)
class Pauses:
    seconds: list[float] = field(default_factory=list)
    is_withdrawn: bool = False

    def __call__(self, _: ConsumeContext, seconds: float) -> None:
        self.seconds.append(seconds)
        if self.is_withdrawn:
            raise MessagesWithdrawn


def a_listener(inbox: Inbox, pauses: Pauses) -> InboxListener:
    return InboxListener(read=read, unreadable=Unreadable, store=inbox.store, ring=inbox.ring, hold=pauses)


def a_context() -> ConsumeContext:
    return ConsumeContext(MessageQueue("orders", "broker-a", 0))


def test_messages_are_stored_together_and_acknowledged_and_then_the_bell_is_rung() -> None:
    inbox, pauses = Inbox(), Pauses()
    assert a_listener(inbox, pauses)([a_message(1), a_message(2)], a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert (inbox.stored, inbox.events, pauses.seconds) == ([["id-1", "id-2"]], ["stored", "rung"], [])


def test_a_database_that_is_away_costs_time_and_no_redelivery() -> None:
    inbox, pauses = Inbox([DatabaseUnavailable("away"), OutcomeUnknown("away"), DatabaseUnavailable("away")]), Pauses()
    context = a_context()
    assert a_listener(inbox, pauses)([a_message(1)], context) is ConsumeStatus.CONSUME_SUCCESS
    assert (inbox.stored, pauses.seconds, context.postponed) == ([["id-1"]], [0.5, 1, 2], {})


def test_messages_that_are_withdrawn_while_they_are_held_are_not_acknowledged() -> None:
    inbox, pauses = Inbox([DatabaseUnavailable("away")]), Pauses(is_withdrawn=True)
    with pytest.raises(MessagesWithdrawn):
        a_listener(inbox, pauses)([a_message(1)], a_context())
    assert inbox.events == []


def test_a_mistake_of_ours_is_not_taken_for_an_outage() -> None:
    pauses = Pauses()
    with pytest.raises(ZeroDivisionError):
        a_listener(Inbox([ZeroDivisionError()]), pauses)([a_message(1)], a_context())
    assert pauses.seconds == []


def test_an_unreadable_message_becomes_a_dead_letter_and_the_others_are_stored() -> None:
    inbox, context = Inbox(), a_context()
    messages = [a_message(0), a_message(1, b"{"), a_message(2)]
    assert a_listener(inbox, Pauses())(messages, context) is ConsumeStatus.CONSUME_SUCCESS
    assert (inbox.stored, context.postponed) == ([["id-0", "id-2"]], {1: DEAD_LETTERS_AT_ONCE})


def test_unreadable_messages_alone_store_nothing_and_ring_no_bell() -> None:
    inbox, context = Inbox(), a_context()
    assert a_listener(inbox, Pauses())([a_message(0, b"{")], context) is ConsumeStatus.CONSUME_SUCCESS
    assert (inbox.events, context.postponed) == ([], {0: DEAD_LETTERS_AT_ONCE})
