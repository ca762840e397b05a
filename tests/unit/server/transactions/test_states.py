"""Compares the table of states (rocketmq_broker.transaction.states) with the behavior of TransactionalMessages."""

from collections.abc import Callable, Mapping

import pytest

from rocketmq_broker.transaction.decision import Refusal
from rocketmq_broker.transaction.messages.half_message import read_half_message
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import TRANSITIONS, State, Verb, Written
from tests.unit.server.transaction_broker import DISCARD_TOPIC, HALF_TOPIC, OP_TOPIC, Producer, TransactionBroker

TOPICS = {
    HALF_TOPIC: Written.HALF_MESSAGE,
    OP_TOPIC: Written.OP_MESSAGE,
    "orders": Written.MESSAGE,
    DISCARD_TOPIC: Written.DISCARDED_MESSAGE,
}

Deed = Callable[[TransactionBroker, PendingTransaction], object]
DEEDS: Mapping[Verb, Deed] = {
    Verb.COMMIT: lambda broker, one: broker.messages.commit(one, broker.now_ms),
    Verb.ROLL_BACK: lambda broker, one: broker.messages.roll_back(one, broker.now_ms),
    Verb.DISCARD: lambda broker, one: broker.messages.discard(one, broker.now_ms),
    Verb.LOSE: lambda broker, one: broker.messages.lose(one, broker.now_ms),
    Verb.PUT_BACK: lambda broker, one: broker.messages.put_back(one, broker.now_ms, 0),
}
"""The verbs that a pending transaction takes."""


def pending(broker: TransactionBroker) -> PendingTransaction:
    broker.send(Producer(), "A")
    (transaction,) = broker.messages
    return transaction


def state_of(broker: TransactionBroker, commit_log_offset: int) -> State | None:
    table = broker.messages.table
    return State.PENDING if table.find(commit_log_offset) is not None else table.ended.state_of(commit_log_offset)


def appended_since(broker: TransactionBroker, position: int) -> tuple[Written, ...]:
    """Returns the kinds of the records after that commit log offset, in order."""
    broker.flush()
    found = [
        (record.commit_log_offset, written)
        for topic, written in TOPICS.items()
        for record in broker.records(topic, 2 if topic == "orders" else 0)
        if record.commit_log_offset >= position
    ]
    return tuple(written for _, written in sorted(found, key=lambda pair: pair[0]))


def test_prepare_does_what_the_table_says(broker: TransactionBroker) -> None:
    before = broker.store.written_position
    transaction = pending(broker)

    row = TRANSITIONS[Verb.PREPARE]
    assert (row.before, state_of(broker, transaction.commit_log_offset)) == (None, row.after)
    assert appended_since(broker, before) == row.appends


@pytest.mark.parametrize("verb", DEEDS, ids=lambda verb: verb.value)
def test_each_verb_leads_a_pending_transaction_where_the_table_says_and_appends_what_it_says(
    broker: TransactionBroker, verb: Verb
) -> None:
    transaction = pending(broker)
    before = broker.store.written_position

    DEEDS[verb](broker, transaction)

    row = TRANSITIONS[verb]
    assert row.before is State.PENDING
    assert state_of(broker, transaction.commit_log_offset) is row.after
    assert appended_since(broker, before) == row.appends


def test_resume_does_what_the_table_says(broker: TransactionBroker) -> None:
    first = pending(broker)
    broker.messages.discard(first, broker.now_ms)
    broker.flush()
    (gone,) = [read_half_message(broker.store.read(record.commit_log_offset)) for record in broker.records(DISCARD_TOPIC)]
    before = broker.store.written_position

    broker.messages.resume(gone, broker.now_ms)

    row = TRANSITIONS[Verb.RESUME]
    (new,) = broker.messages
    assert state_of(broker, first.commit_log_offset) is row.before, "the discarded transaction stays what it is"
    assert state_of(broker, new.commit_log_offset) is row.after
    assert appended_since(broker, before) == row.appends


@pytest.mark.parametrize("verb", DEEDS, ids=lambda verb: verb.value)
def test_a_verb_whose_records_are_lost_leaves_the_transaction_pending(broker: TransactionBroker, verb: Verb) -> None:
    transaction = pending(broker)
    offsets = transaction.commit_log_offset, transaction.stored_at, transaction.stored_queue_offset
    position = broker.store.written_position

    DEEDS[verb](broker, transaction)
    broker.messages.take_back(position)

    assert list(broker.messages) == [transaction]
    assert (transaction.commit_log_offset, transaction.stored_at, transaction.stored_queue_offset) == offsets
    assert broker.messages.table.ended.state_of(transaction.commit_log_offset) is None


@pytest.mark.parametrize("verb", [verb for verb in DEEDS if TRANSITIONS[verb].after is not State.PENDING], ids=str)
def test_from_a_final_state_no_decision_leads_anywhere(broker: TransactionBroker, verb: Verb) -> None:
    producer = Producer()
    half = broker.send(producer, "A")
    (transaction,) = broker.messages
    DEEDS[verb](broker, transaction)
    broker.flush()
    before = broker.store.written_position

    with pytest.raises(Exception, match="its first decision counts"):
        broker.end(producer, half, 8)

    assert sum(broker.messages.counts.refusals.values()) == 1
    assert set(broker.messages.counts.refusals) <= set(Refusal)
    assert broker.store.written_position == before


def test_the_table_has_a_row_for_each_verb_and_a_way_into_each_state() -> None:
    assert set(TRANSITIONS) == set(Verb)
    assert {row.after for row in TRANSITIONS.values()} == set(State)
    assert all(hasattr(TransactionBroker().messages, verb.value) for verb in Verb)
