"""Tests that an outbox sends each message at least once, and only after the database transaction is committed."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from sqlmodel import Session

from rocketmq_broker.databases.sqlalchemy import Inbox
from rocketmq_broker.message import Message
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.inbox.outbox import NotSent, OutboxDrain


@dataclass(slots=True)
class Broker:
    """A broker that stores messages, except those with certain texts."""

    refused: set[str] = field(default_factory=set)
    stored: list[Message] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)

    def send(self, message: Message) -> None:
        self.tried.append(message.text)
        if message.text in self.refused:
            raise NotSent("the broker is away")
        self.stored.append(message)

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.stored]


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def outbox(inbox: Inbox[Session], broker: Broker) -> OutboxDrain:
    return OutboxDrain(inbox, broker.send)


def texts(*numbers: int) -> list[Message]:
    return [Message.of("refusals", f"order {number}", tags="refused", keys=[f"key-{number}"]) for number in numbers]


def test_a_message_is_sent_as_it_was_written_and_once(inbox: Inbox[Session], outbox: OutboxDrain, broker: Broker) -> None:
    (message,) = texts(1)
    inbox.put([message])
    assert outbox.send_due()
    assert not outbox.send_due()
    (stored,) = broker.stored
    assert (stored.topic, stored.body, stored.tags, stored.keys) == ("refusals", b"order 1", "refused", ("key-1",))
    assert stored.properties == message.properties


def test_a_message_is_not_sent_before_its_transaction_is_committed(
    inbox: Inbox[Session], outbox: OutboxDrain, broker: Broker
) -> None:
    class RolledBack(Exception):
        pass

    def write(*, is_committed: bool) -> None:
        with inbox._transaction() as session:
            inbox.put_in(session, texts(1))
            if not is_committed:
                raise RolledBack

    with pytest.raises(RolledBack):
        write(is_committed=False)
    assert not outbox.send_due()
    write(is_committed=True)
    outbox.send_due()
    assert broker.texts == ["order 1"]


def test_a_message_that_the_broker_does_not_confirm_is_sent_later_and_blocks_no_other(
    inbox: Inbox[Session], outbox: OutboxDrain, broker: Broker
) -> None:
    inbox.put(texts(*range(6)))
    broker.refused = {"order 2"}
    with pytest.raises(NotSent):
        outbox.send_due()
    assert sorted(broker.texts) == ["order 0", "order 1", "order 3", "order 4", "order 5"]
    broker.refused = set()
    outbox.send_due()
    assert broker.texts[-1] == "order 2"
    assert not inbox.is_due()


def test_a_broker_that_is_away_is_not_asked_for_each_message(inbox: Inbox[Session], outbox: OutboxDrain, broker: Broker) -> None:
    inbox.put(texts(*range(10)))
    broker.refused = {f"order {number}" for number in range(10)}
    with pytest.raises(NotSent, match="the broker is away"):
        outbox.send_due()
    assert (len(broker.tried), inbox.state().new) == (3, 10)
    broker.refused = set()
    while outbox.send_due():
        assert len(broker.tried) < 100
    assert sorted(broker.texts) == [f"order {number}" for number in range(10)]


def test_a_process_that_ends_after_sending_sends_again(inbox: Inbox[Session], broker: Broker) -> None:
    inbox.put(texts(1))

    def send_and_end(message: Message) -> None:
        broker.send(message)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        OutboxDrain(inbox, send_and_end).send_due()
    OutboxDrain(inbox, broker.send).send_due()
    assert broker.texts == ["order 1"] * 2


def test_messages_of_another_consumer_are_left_alone(
    inbox_of: Callable[[str], Inbox[Session]], outbox: OutboxDrain, broker: Broker
) -> None:
    inbox_of("another").put(texts(1))
    assert not outbox.send_due()
    assert broker.tried == []


def test_an_unavailable_database_is_an_error_of_the_call(inbox: Inbox[Session], outbox: OutboxDrain) -> None:
    with inbox._transaction() as session:
        session.connection().exec_driver_sql("ALTER TABLE rocketmq_inbox RENAME TO gone")
    with pytest.raises(DatabaseFailure):
        outbox.send_due()


def test_messages_that_can_never_be_sent_do_not_block_the_others(
    inbox: Inbox[Session], outbox: OutboxDrain, broker: Broker
) -> None:
    for message in texts(*range(6)):
        inbox.put([message])
    broker.refused = {f"order {number}" for number in range(5)}
    for _ in range(3):
        with pytest.raises(NotSent):
            outbox.send_due()
    assert broker.texts == ["order 5"]
