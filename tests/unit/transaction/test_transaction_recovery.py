"""Tests how the table of transactions is rebuilt. Each test begins with the queues that some broker left."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.evidence import Evidence
from rocketmq_broker.transaction.messages.half_message import read_half_message
from rocketmq_broker.transaction.messages.op_message import op_message
from rocketmq_broker.transaction.recovery import RecoveredTable, RecoveredTransaction, TransactionRecovery
from rocketmq_broker.transaction.states import State
from rocketmq_broker.transaction.transitions import committed, discarded, put_back, resumed
from tests.unit.transaction.records import (
    HOST,
    changed,
    half_inner,
    half_record,
    op_record,
    rewritten_by_apache,
    stored,
    transaction,
)

NOW_MS = 50_000
POLICY = CheckPolicy(transaction_timeout_ms=6000, check_interval_ms=60_000)
TIMES = props.TRANSACTION_CHECK_TIMES
PREPARED = props.TRANSACTION_PREPARED_QUEUE_OFFSET
HALF = half_record(100, 0)
CHECKED = rewritten_by_apache(HALF, commit_log_offset=500, queue_offset=1, store_ms=30_000, **{TIMES: "1"})
"""The copy that Apache's broker writes when it checks HALF."""
GONE = stored(discarded(read_half_message(HALF), transaction(100, checks=15)), commit_log_offset=500, queue_offset=0)
"""HALF's message, discarded."""


def recover(
    halves: Iterable[bytes], decided: Iterable[int] = (), *, check_counts: Mapping[int, int] | None = None
) -> RecoveredTable:
    recovery = TransactionRecovery(POLICY, NOW_MS, check_counts=check_counts or {})
    for queue_offset, half_queue_offset in enumerate(decided):
        recovery.add_op(op_record(half_queue_offset, queue_offset=queue_offset))
    for half in halves:
        recovery.add_half(half)
    return recovery.finish()


def without(name: str, message: InnerMessage) -> InnerMessage:
    return changed(message, properties=props.remove(message.properties, (name,)))


def undecided(table: RecoveredTable) -> list[int]:
    return [recovered.transaction.commit_log_offset for recovered in table.undecided]


def settled_by(recovered: RecoveredTransaction, candidates: Iterable[bytes], halves: Iterable[bytes] = ()) -> State | None:
    """Returns the state that the candidates prove, or None. `halves` are the half messages that the store still has."""
    stored_halves = {half.commit_log_offset: half for half in map(read_half_message, halves)}
    evidence = Evidence([recovered], stored_halves.get)
    for data in candidates:
        evidence.consider(data)
    return evidence.states.get(recovered.transaction.commit_log_offset)


def test_half_messages_without_an_op_message_are_undecided() -> None:
    table = recover([half_record(100, 0, transaction_id="A"), half_record(200, 1, transaction_id="B")], [0])

    (left,) = table.undecided
    transaction = left.transaction
    assert (transaction.commit_log_offset, transaction.queue_offset, transaction.stored_at) == (200, 1, 200)
    assert (transaction.topic, transaction.queue_id, transaction.producer_group) == (b"orders", 3, "order_service")
    assert (transaction.begun_ms, transaction.due_ms, transaction.checks) == (1000, 7000, 0)
    assert left.transaction_id == "B"
    assert table.superseded == []
    assert table.damaged == []


def test_op_messages_of_rocketmq_5_decide_several() -> None:
    recovery = TransactionRecovery(POLICY, NOW_MS, op_offset=7)
    recovery.add_op(op_record(0, queue_offset=7))
    several = changed(op_message(0, 0, HOST, None, None), body=b"1,2,")
    recovery.add_op(stored(several, commit_log_offset=9100, queue_offset=8))
    for number in range(4):
        recovery.add_half(half_record(100 * number, number, transaction_id=str(number)))

    table = recovery.finish()

    assert undecided(table) == [300]
    assert table.op_window.advance(3) == 9


def test_check_counts_come_from_the_file_and_the_next_check_waits_an_interval() -> None:
    table = recover([half_record(100, 0)], check_counts={100: 4})

    assert table.undecided[0].transaction.checks == 4
    assert table.undecided[0].transaction.due_ms == NOW_MS + 60_000


def test_what_is_too_old_is_not_looked_at_before_its_producers_have_come_back() -> None:
    recovery = TransactionRecovery(replace(POLICY, file_reserved_ms=10_000), NOW_MS)
    recovery.add_half(half_record(100, 0, transaction_id="too old", store_ms=NOW_MS - 10_001))
    recovery.add_half(half_record(200, 1, transaction_id="old", store_ms=NOW_MS - 10_000))

    due = [recovered.transaction.due_ms for recovered in recovery.finish().undecided]

    assert due == [NOW_MS + 60_000, NOW_MS - 10_000 + 6000]


def test_of_copies_that_apache_wrote_at_its_checks_the_newest_counts() -> None:
    third = rewritten_by_apache(HALF, commit_log_offset=900, queue_offset=2, store_ms=40_000, **{TIMES: "2"})

    table = recover([HALF, CHECKED, third])

    (left,) = table.undecided
    assert (left.transaction.commit_log_offset, left.transaction.queue_offset, left.transaction.checks) == (900, 2, 2)
    assert left.copies == [(100, 0), (500, 1)]
    assert table.superseded == [0, 1]
    assert left.transaction.begun_ms == 1000


def test_an_op_message_for_a_copy_of_apaches_decides_the_transaction() -> None:
    table = recover([HALF, CHECKED], decided=[0])

    assert undecided(table) == []
    assert table.superseded == [1]


def test_a_copy_that_apache_wrote_within_the_immunity_time_belongs_to_the_first_one() -> None:
    first = half_record(100, 0, CHECK_IMMUNITY_TIME_IN_SECONDS="30")
    copy = rewritten_by_apache(first, commit_log_offset=500, queue_offset=1, store_ms=3000, **{TIMES: "1", PREPARED: "0"})

    assert undecided(recover([first, copy])) == [500]
    assert undecided(recover([first, copy], decided=[0])) == []


def test_two_transactions_of_apache_are_not_mixed_up() -> None:
    one, two = half_record(100, 0, transaction_id="A"), half_record(200, 1, transaction_id="B")
    copy = rewritten_by_apache(two, commit_log_offset=500, queue_offset=2, store_ms=30_000, **{TIMES: "1"})

    table = recover([one, two, copy], decided=[0])

    assert undecided(table) == [500]
    assert table.superseded == [1]


def test_a_message_that_was_sent_twice_is_two_transactions() -> None:
    table = recover([half_record(100, 0, born_ms=1), half_record(200, 1, born_ms=2)], decided=[0])

    assert undecided(table) == [200]


MOVED = stored(put_back(read_half_message(HALF), transaction(100, 0), 1), commit_log_offset=500, queue_offset=1, store_ms=30_000)
"""The copy of HALF that this broker writes when HALF holds the queue back."""


def test_a_copy_of_ours_is_known_by_the_first_offset_and_the_op_message_before_it_decides_nothing() -> None:
    table = recover([HALF, MOVED], decided=[0])

    (left,) = table.undecided
    assert (left.transaction.commit_log_offset, left.transaction.queue_offset) == (100, 0)
    assert (left.transaction.stored_at, left.transaction.stored_queue_offset, left.transaction.checks) == (500, 1, 1)
    assert table.superseded == []


def test_a_copy_of_ours_whose_first_one_is_out_of_sight_is_known_by_its_offset() -> None:
    (left,) = recover([MOVED]).undecided

    assert (left.transaction.commit_log_offset, left.transaction.queue_offset) == (100, 0)


def test_a_crash_between_a_copy_of_ours_and_the_op_message_leaves_one_transaction() -> None:
    table = recover([HALF, MOVED])

    assert undecided(table) == [100]
    assert table.superseded == [0]


def test_a_decided_copy_of_ours_is_decided() -> None:
    assert undecided(recover([HALF, MOVED], decided=[0, 1])) == []


def test_a_copy_of_ours_that_apache_rewrote_is_undecided() -> None:
    rewritten = rewritten_by_apache(MOVED, commit_log_offset=900, queue_offset=2, store_ms=40_000, **{TIMES: "2"})

    table = recover([HALF, MOVED, rewritten], decided=[0])

    (left,) = table.undecided
    assert left.transaction.commit_log_offset == 900
    assert left.copies == [(100, 0), (500, 1)]
    assert undecided(recover([HALF, MOVED, rewritten], decided=[0, 1])) == []


def test_a_resumed_message_is_a_transaction_of_its_own() -> None:
    again = stored(resumed(read_half_message(GONE)), commit_log_offset=900, queue_offset=1, store_ms=40_000)

    table = recover([HALF, again], decided=[0])

    (left,) = table.undecided
    assert (left.transaction.commit_log_offset, left.transaction.checks, left.transaction.begun_ms) == (900, 0, 40_000)
    assert left.copies == []


def test_one_bad_record_costs_that_record_only() -> None:
    poisoned = without(props.REAL_TOPIC, half_inner(transaction_id="P"))
    recovery = TransactionRecovery(POLICY, NOW_MS)
    recovery.add_op(b"nothing")
    recovery.add_op(half_record(1, 1))
    for data in [
        half_record(100, 0, transaction_id="A"),
        b"torn",
        stored(poisoned, commit_log_offset=200, queue_offset=1),
        half_record(300, 2, transaction_id="B"),
    ]:
        recovery.add_half(data)

    table = recovery.finish()

    assert undecided(table) == [100, 300]
    assert len(table.damaged) == 4


def _committed(half: bytes, *, half_offset: int, commit_log_offset: int) -> bytes:
    draft = committed(read_half_message(half), transaction(half_offset))
    return stored(draft, commit_log_offset=commit_log_offset, queue_offset=0)


def test_a_committed_message_without_its_op_message_is_recognised() -> None:
    (left,) = recover([HALF]).undecided

    assert settled_by(left, [_committed(HALF, half_offset=100, commit_log_offset=500)]) is State.COMMITTED


def test_a_message_that_merely_looks_alike_settles_nothing() -> None:
    (left,) = recover([HALF]).undecided
    sent_again = half_record(400, 1, born_ms=77)
    plain = stored(changed(half_inner(), topic=b"orders"), commit_log_offset=600, queue_offset=0)

    candidates = [_committed(sent_again, half_offset=400, commit_log_offset=500), plain, HALF, b"torn"]

    assert settled_by(left, candidates) is None


def test_a_copy_of_apaches_is_settled_by_the_commit_of_its_first_one() -> None:
    (left,) = recover([CHECKED]).undecided

    commit = _committed(HALF, half_offset=100, commit_log_offset=450)
    assert settled_by(left, [commit], [HALF, CHECKED]) is State.COMMITTED
    assert settled_by(left, [commit], [CHECKED]) is None
    assert settled_by(left, [commit], [half_record(100, 0, born_ms=77), CHECKED]) is None


def test_a_discarded_message_settles_what_came_before_it_and_not_what_was_resumed() -> None:
    again = stored(resumed(read_half_message(GONE)), commit_log_offset=900, queue_offset=1)

    assert settled_by(recover([HALF]).undecided[0], [GONE]) is State.DISCARDED
    assert settled_by(recover([again]).undecided[0], [GONE]) is None


def test_a_message_that_apache_resumed_is_not_settled_by_the_discard_before_it() -> None:
    again = rewritten_by_apache(HALF, commit_log_offset=900, queue_offset=1, store_ms=40_000, **{TIMES: "0"})

    (left,) = recover([HALF, again], decided=[0]).undecided

    assert left.transaction.commit_log_offset == 900
    assert settled_by(left, [GONE]) is None


def test_without_a_transaction_id_the_prepared_offset_tells() -> None:
    anonymous = without(props.UNIQUE_KEY, half_inner())
    half = stored(anonymous, commit_log_offset=100, queue_offset=0)
    (left,) = recover([half]).undecided

    assert left.transaction_id is None
    assert settled_by(left, [_committed(half, half_offset=200, commit_log_offset=500)]) is None
    assert settled_by(left, [_committed(half, half_offset=100, commit_log_offset=500)]) is State.COMMITTED


def test_two_messages_without_a_transaction_id_are_two_transactions() -> None:
    anonymous = without(props.UNIQUE_KEY, half_inner())

    table = recover([stored(anonymous, commit_log_offset=100 * n, queue_offset=n) for n in range(2)])

    assert undecided(table) == [0, 100]


# What somebody else sends who knows everything of a message but cannot send it from the producer's own connection.

FORGERS_HOST = bytes((127, 0, 0, 1, 0, 0, 0x15, 0xB4))


def _forged(draft: InnerMessage, *, commit_log_offset: int, queue_offset: int = 0) -> bytes:
    return stored(changed(draft, born_host=FORGERS_HOST), commit_log_offset=commit_log_offset, queue_offset=queue_offset)


@pytest.mark.parametrize("half_offset", [0, 100])
def test_a_plain_message_that_claims_to_be_the_committed_one_settles_nothing(half_offset: int) -> None:
    """A plain message with the transaction bits of a committed message does not settle a transaction.

    Earlier versions of this broker stored the transaction bits that a client sent.
    """
    (left,) = recover([half_record(half_offset, 0)]).undecided
    plain = changed(half_inner(), topic=b"orders", queue_id=3, sys_flag=8)

    assert settled_by(left, [_forged(plain, commit_log_offset=500)]) is None


def test_the_commit_of_somebody_elses_half_message_with_the_same_identity_settles_nothing() -> None:
    half, other = half_record(100, 0), _forged(half_inner(), commit_log_offset=300, queue_offset=1)
    mine, theirs = recover([half, other]).undecided
    commit = _committed(other, half_offset=300, commit_log_offset=500)

    assert settled_by(theirs, [commit], [half, other]) is State.COMMITTED
    assert settled_by(mine, [commit], [half, other]) is None


def test_a_committed_message_that_names_the_half_message_and_is_another_one_settles_nothing() -> None:
    (left,) = recover([HALF]).undecided
    moved = transaction(100)
    moved.topic, moved.queue_id = b"%RETRY%g", 0
    elsewhere = committed(read_half_message(HALF), moved)

    assert settled_by(left, [stored(elsewhere, commit_log_offset=500, queue_offset=0)]) is None
    assert settled_by(left, [_committed(HALF, half_offset=100, commit_log_offset=50)]) is None


def test_a_half_message_that_claims_to_be_a_later_copy_is_a_transaction_of_its_own() -> None:
    """A half message that a client marked as a later copy is recovered as a separate transaction.

    Earlier versions of this broker stored properties that only a broker may write.
    """
    later = half_inner(b"forged", **{TIMES: "1", PREPARED: "0"})

    table = recover([HALF, _forged(later, commit_log_offset=300, queue_offset=1)])

    assert undecided(table) == [100, 300]
    assert [recovered.copies for recovered in table.undecided] == [[], []]
    assert table.superseded == []


def test_a_discarded_message_that_names_another_half_message_settles_nothing() -> None:
    (left,) = recover([HALF]).undecided
    gone = discarded(read_half_message(HALF), transaction(400, checks=15))

    assert settled_by(left, [stored(gone, commit_log_offset=500, queue_offset=0)]) is None


def test_a_message_that_apache_discarded_settles_its_transaction() -> None:
    """A message that Apache's broker discarded settles its transaction, although it names no half message.

    Only the broker can write to the topic of discarded messages.
    """
    (left,) = recover([HALF]).undecided
    gone = discarded(read_half_message(HALF), transaction(0, checks=15))

    assert settled_by(left, [stored(gone, commit_log_offset=500, queue_offset=0)]) is State.DISCARDED
    assert settled_by(left, [_forged(gone, commit_log_offset=500)]) is None
