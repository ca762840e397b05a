"""Tests half messages that cannot be read: not written yet, expired, or damaged."""

import pytest

from rocketmq_broker.server.transactions.transaction_bridge import TransactionBridge, message_at
from rocketmq_broker.transaction.errors import HalfMessageExpired, HalfMessageLost, NotWrittenYet
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from tests.unit.server.transaction_broker import Producer, TransactionBroker
from tests.unit.transaction.records import pending


@pytest.fixture
def bridge(broker: TransactionBroker) -> TransactionBridge:
    return TransactionBridge(broker.store)


def sent(broker: TransactionBroker, transaction_id: str = "A", *, flush: bool = True) -> PendingTransaction:
    offset = broker.send(Producer(), transaction_id, flush=flush).commit_log_offset
    return pending(broker.messages.table, offset)


def test_a_half_message_reads_as_it_was_stored(broker: TransactionBroker, bridge: TransactionBridge) -> None:
    half = bridge.read(sent(broker))

    assert (half.transaction_id, half.body, half.destination()) == ("A", b"order", (b"orders", 2))


def test_a_half_message_on_its_way_to_the_files_is_not_lost(broker: TransactionBroker, bridge: TransactionBridge) -> None:
    transaction = sent(broker, flush=False)

    with pytest.raises(NotWrittenYet):
        bridge.read(transaction)
    broker.flush()
    assert bridge.read(transaction).transaction_id == "A"


def test_a_half_message_before_the_first_file_is_expired(broker: TransactionBroker, bridge: TransactionBridge) -> None:
    transaction = sent(broker)
    transaction.stored_at = broker.store.commit_log_min_offset - 1

    with pytest.raises(HalfMessageExpired):
        bridge.read(transaction)


def test_another_record_at_the_place_of_a_half_message_means_that_it_is_lost(
    broker: TransactionBroker, bridge: TransactionBridge
) -> None:
    one, other = sent(broker, "A"), sent(broker, "B")
    one.stored_at = other.stored_at
    with pytest.raises(HalfMessageLost, match="a wrong queue offset") as caught:
        bridge.read(one)
    assert not isinstance(caught.value, HalfMessageExpired)

    position = broker.messages.commit(other, broker.now_ms)
    broker.flush()
    one.stored_at = broker.records("orders", 2)[0].commit_log_offset
    assert position > one.stored_at
    with pytest.raises(HalfMessageLost, match="is not a half message: topic orders"):
        bridge.read(one)


def test_a_client_may_name_any_offset(broker: TransactionBroker) -> None:
    transaction = sent(broker)

    found = message_at(broker.store, transaction.stored_at)
    assert found is not None
    assert found.transaction_id == "A"
    assert [message_at(broker.store, offset) for offset in (-1, transaction.stored_at + 1, 1 << 40)] == [None] * 3


def test_what_was_appended_and_lost_does_not_count_as_appended(broker: TransactionBroker, bridge: TransactionBridge) -> None:
    transaction = sent(broker)
    position = broker.store.written_position

    op = bridge.append_op(transaction.queue_offset, broker.now_ms)
    assert bridge.appended_position == op.end_position > position
    bridge.take_back(position)
    assert bridge.appended_position == position
