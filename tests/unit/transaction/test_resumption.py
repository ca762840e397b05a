import pytest

from rocketmq_broker.transaction.errors import NotResumable
from rocketmq_broker.transaction.messages.half_message import HalfMessage, read_any_message, read_half_message
from rocketmq_broker.transaction.resumption import refuse_if_not_resumable
from rocketmq_broker.transaction.transitions import committed, discarded
from tests.unit.transaction.records import changed, half_record, stored, transaction

HALF = read_half_message(half_record(100, 0))


def gone(half: HalfMessage) -> HalfMessage:
    return read_half_message(stored(discarded(half, transaction(100, checks=15)), commit_log_offset=500, queue_offset=0))


def delivered(half: HalfMessage) -> HalfMessage:
    return read_any_message(stored(committed(half, transaction(100)), commit_log_offset=400, queue_offset=0))


def test_a_discarded_message_is_resumable_and_its_own_half_message_does_not_matter() -> None:
    refuse_if_not_resumable(gone(HALF), [HALF])


def test_a_message_that_was_delivered_is_not_resumable() -> None:
    with pytest.raises(NotResumable, match="already delivered"):
        refuse_if_not_resumable(gone(HALF), [HALF, delivered(HALF)])


def test_a_message_that_was_not_discarded_is_not_resumable() -> None:
    with pytest.raises(NotResumable, match="not discarded"):
        refuse_if_not_resumable(HALF, [HALF])


def test_a_message_that_was_resumed_is_not_resumable_once_more() -> None:
    resumed_since = read_half_message(half_record(900, 1))

    with pytest.raises(NotResumable, match="already resumed"):
        refuse_if_not_resumable(gone(HALF), [HALF, resumed_since])


def test_another_message_with_the_same_transaction_id_does_not_matter() -> None:
    sent_again = read_half_message(half_record(900, 1, born_ms=7777))

    refuse_if_not_resumable(gone(HALF), [sent_again, delivered(sent_again)])
    with pytest.raises(NotResumable, match="already delivered"):
        refuse_if_not_resumable(gone(HALF), [sent_again, delivered(HALF)])


def test_finding_the_discarded_message_itself_settles_nothing() -> None:
    itself = gone(HALF)

    refuse_if_not_resumable(itself, [itself, HALF])
    with pytest.raises(NotResumable, match="already delivered"):
        refuse_if_not_resumable(itself, [itself, delivered(HALF)])


def test_a_message_of_the_same_origin_that_is_no_transactions_does_not_matter() -> None:
    plain = changed(committed(HALF, transaction(100)), sys_flag=0)

    refuse_if_not_resumable(gone(HALF), [read_any_message(stored(plain, commit_log_offset=400, queue_offset=0))])
