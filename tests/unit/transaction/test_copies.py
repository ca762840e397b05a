"""Tests that the half messages of one transaction are recognized, as this broker and Apache's broker write them."""

import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.transaction.copies import Copies, Copy, are_decided, by_transaction, first_offsets, identity_of, is_copy
from rocketmq_broker.transaction.messages.half_message import HalfMessage, read_half_message
from rocketmq_broker.transaction.pending_transaction import PendingTransaction, RecordOffsets
from rocketmq_broker.transaction.transitions import discarded, put_back, resumed
from tests.unit.transaction.records import half_record, rewritten_by_apache, stored, transaction

FIRST = half_record(100, 5)


def checked_by_apache(times: int = 1) -> HalfMessage:
    changed = {props.TRANSACTION_CHECK_TIMES: str(times)}
    return read_half_message(rewritten_by_apache(FIRST, commit_log_offset=500, queue_offset=9, store_ms=3000, **changed))


def put_back_here() -> HalfMessage:
    message = put_back(read_half_message(FIRST), transaction(100, 5), 0)
    return read_half_message(stored(message, commit_log_offset=700, queue_offset=11))


def resumed_here() -> HalfMessage:
    gone = stored(discarded(read_half_message(FIRST), transaction(100, 5, checks=15)), commit_log_offset=600, queue_offset=0)
    return read_half_message(stored(resumed(read_half_message(gone)), commit_log_offset=800, queue_offset=12))


def test_copies_have_the_identity_of_the_first_half_message_and_a_resumed_message_has_its_own() -> None:
    first = identity_of(read_half_message(FIRST))

    assert identity_of(checked_by_apache()) == identity_of(put_back_here()) == first
    assert identity_of(resumed_here()) != first


def test_only_a_copy_that_this_broker_put_back_names_the_first_one() -> None:
    assert first_offsets(put_back_here()) == (100, 5)
    assert [first_offsets(half) for half in (read_half_message(FIRST), checked_by_apache(), resumed_here())] == [None] * 3


@pytest.mark.parametrize(
    ("half", "expected"),
    [(read_half_message(FIRST), False), (checked_by_apache(), True), (put_back_here(), True), (resumed_here(), False)],
    ids=["first", "checked by Apache", "put back", "resumed"],
)
def test_a_copy_begins_no_transaction(half: HalfMessage, expected: bool) -> None:
    assert is_copy(half) is expected
    assert Copy(half, is_closed=False).begins is not expected


def copies_of(*halves: HalfMessage, closed: tuple[int, ...] = ()) -> list[list[Copy]]:
    return by_transaction(Copy(half, is_closed=half.queue_offset in closed) for half in halves)


def test_a_half_message_that_is_no_copy_begins_another_transaction() -> None:
    apart = copies_of(read_half_message(FIRST), checked_by_apache(), read_half_message(half_record(900, 20)))

    assert [[copy.offsets.queue_offset for copy in copies] for copies in apart] == [[5, 9], [20]]


@pytest.mark.parametrize(("closed", "is_decided"), [((), False), ((5,), True), ((9,), True)])
def test_an_op_message_for_any_copy_of_apaches_decides(closed: tuple[int, ...], is_decided: bool) -> None:
    (copies,) = copies_of(read_half_message(FIRST), checked_by_apache(), closed=closed)

    assert are_decided(copies) is is_decided


@pytest.mark.parametrize(("closed", "is_decided"), [((5,), False), ((5, 11), True)])
def test_the_op_message_for_a_half_message_that_was_put_back_decides_nothing(closed: tuple[int, ...], is_decided: bool) -> None:
    (copies,) = copies_of(read_half_message(FIRST), put_back_here(), closed=closed)

    assert are_decided(copies) is is_decided


def test_a_transaction_is_found_by_its_copies_as_long_as_it_is_pending() -> None:
    one = transaction(500, 9)
    pending: dict[int, PendingTransaction] = {500: one}
    copies = Copies(pending)
    copies.add(one, RecordOffsets(100, 5))
    copies.add_unread(one, identity_of(read_half_message(FIRST)))

    assert copies.find(100) == (one, 5)
    assert copies.find(101) is None
    assert copies.find_unread(read_half_message(FIRST)) is one
    pending.clear()
    assert copies.find(100) is None
    assert copies.find_unread(read_half_message(FIRST)) is None


def test_another_transaction_at_the_offset_of_a_decided_one_is_not_taken_for_it() -> None:
    pending = {500: transaction(500, 9)}
    copies = Copies(pending)
    copies.add(pending[500], RecordOffsets(100, 5))

    pending[500] = transaction(500, 9)

    assert copies.find(100) is None
