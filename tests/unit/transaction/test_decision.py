from dataclasses import replace

import pytest

from rocketmq_broker.message.sysflag import TRANSACTION_COMMIT_TYPE, TRANSACTION_NOT_TYPE, TRANSACTION_ROLLBACK_TYPE
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.copies import identity_of
from rocketmq_broker.transaction.decision import (
    CheckAction,
    EndAction,
    EndRequest,
    GroupState,
    Refusal,
    decide_check,
    decide_end,
    decide_late_end,
    must_be_put_back,
)
from rocketmq_broker.transaction.messages.half_message import read_any_message
from rocketmq_broker.transaction.pending import PendingTransactions
from rocketmq_broker.transaction.pending_transaction import RecordOffsets
from rocketmq_broker.transaction.states import State
from tests.unit.transaction.records import GROUP, changed, half_inner, half_record, pending, stored, transaction

POLICY = CheckPolicy(transaction_timeout_ms=1000, check_interval_ms=2000, check_max=3, file_reserved_ms=100_000, hold_back_max=10)


@pytest.fixture
def table() -> PendingTransactions:
    table = PendingTransactions(check_interval_ms=2000)
    table.add(transaction(100, 5))
    return table


def request(answer: int = TRANSACTION_COMMIT_TYPE, offset: int = 100, queue_offset: int = 5, group: str = GROUP) -> EndRequest:
    return EndRequest(answer, offset, queue_offset, group)


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (TRANSACTION_COMMIT_TYPE, EndAction.COMMIT),
        (TRANSACTION_ROLLBACK_TYPE, EndAction.ROLLBACK),
        (TRANSACTION_NOT_TYPE, EndAction.KEEP),
    ],
)
def test_a_pending_transaction_is_decided_as_its_producer_says(
    table: PendingTransactions, answer: int, action: EndAction
) -> None:
    decision = decide_end(table, request(answer))

    assert decision.action is action
    assert decision.transaction is (None if action is EndAction.KEEP else table.find(100))


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [(request(group="other"), Refusal.PRODUCER_GROUP), (request(queue_offset=6), Refusal.STATE_TABLE_OFFSET)],
)
def test_a_decision_that_does_not_fit_is_refused(table: PendingTransactions, wrong: EndRequest, refusal: Refusal) -> None:
    decision = decide_end(table, wrong)

    assert (decision.action, decision.refusal) == (EndAction.REFUSE, refusal)
    assert decision.transaction is None
    assert decision.remark


@pytest.mark.parametrize(
    ("outcome", "refusal"),
    [
        (State.COMMITTED, Refusal.ALREADY_COMMITTED),
        (State.ROLLED_BACK, Refusal.ALREADY_ROLLED_BACK),
        (State.DISCARDED, Refusal.ALREADY_DISCARDED),
    ],
)
@pytest.mark.parametrize("answer", [TRANSACTION_COMMIT_TYPE, TRANSACTION_ROLLBACK_TYPE])
def test_the_first_decision_wins(table: PendingTransactions, outcome: State, refusal: Refusal, answer: int) -> None:
    found = pending(table)
    table.end(found, outcome, RecordOffsets(900, 0))

    decision = decide_end(table, request(answer))

    assert (decision.action, decision.refusal) == (EndAction.REFUSE, refusal)


def test_an_offset_that_the_table_does_not_know_is_looked_up(table: PendingTransactions) -> None:
    assert decide_end(table, request(offset=101)).action is EndAction.LOOK_UP


@pytest.mark.parametrize(
    ("late", "data", "refusal"),
    [
        (request(offset=300), None, Refusal.NOT_FOUND),
        (
            request(offset=300),
            stored(changed(half_inner(), topic=b"x"), commit_log_offset=300, queue_offset=5),
            Refusal.COMMIT_LOG_OFFSET,
        ),
        (request(offset=300, group="other"), half_record(300, 5), Refusal.PRODUCER_GROUP),
        (request(offset=300), half_record(300, 6), Refusal.STATE_TABLE_OFFSET),
        (request(offset=300), half_record(300, 5), Refusal.ALREADY_DECIDED),
    ],
)
def test_a_late_decision_is_refused_with_its_reason(
    table: PendingTransactions, late: EndRequest, data: bytes | None, refusal: Refusal
) -> None:
    half = read_any_message(data) if data else None

    assert decide_late_end(table, late, half).refusal is refusal


def test_a_late_decision_about_an_older_copy_reaches_the_transaction(table: PendingTransactions) -> None:
    found = pending(table)
    older = read_any_message(half_record(50, 2))
    table.copies.add_unread(found, identity_of(older))

    decision = decide_late_end(table, request(offset=50, queue_offset=2), older)

    assert (decision.action, decision.transaction) == (EndAction.COMMIT, found)

    table.end(found, State.COMMITTED, RecordOffsets(900, 0))
    assert decide_late_end(table, request(offset=50, queue_offset=2), older).refusal is Refusal.ALREADY_DECIDED


def test_a_decision_about_a_known_copy_reaches_the_transaction(table: PendingTransactions) -> None:
    found = pending(table)
    table.copies.add(found, RecordOffsets(50, 2))

    assert decide_end(table, request(offset=50, queue_offset=2)).transaction is found
    assert decide_end(table, request(offset=50, queue_offset=5)).refusal is Refusal.STATE_TABLE_OFFSET


def test_a_decision_after_a_move_refers_to_the_first_half_message(table: PendingTransactions) -> None:
    found = pending(table)
    table.put_back(found, RecordOffsets(900, 77), RecordOffsets(1000, 0))

    assert decide_end(table, request()).transaction is found


ONLINE = GroupState(is_online=True, can_be_asked=True, owes_answer=False)
OFFLINE = GroupState(is_online=False, can_be_asked=False, owes_answer=False)
BUSY = GroupState(is_online=True, can_be_asked=False, owes_answer=False)
OWING = GroupState(is_online=True, can_be_asked=False, owes_answer=True)
ONE_OF_TWO_OWING = GroupState(is_online=True, can_be_asked=True, owes_answer=True)


@pytest.mark.parametrize(
    ("checks", "now_ms", "group", "action"),
    [
        (0, 1000, ONLINE, CheckAction.CHECK_BACK),
        (2, 1000, ONLINE, CheckAction.CHECK_BACK),
        (2, 1000, ONE_OF_TWO_OWING, CheckAction.CHECK_BACK),
        (0, 1000, OFFLINE, CheckAction.NO_PRODUCER),
        (3, 1000, ONLINE, CheckAction.DISCARD),
        (3, 1000, OFFLINE, CheckAction.DISCARD),
        (1, 100_000, ONLINE, CheckAction.CHECK_BACK),
        (0, 100_001, ONLINE, CheckAction.CHECK_BACK),
        (0, 100_001, BUSY, CheckAction.HOLD),
        (1, 100_001, ONLINE, CheckAction.SKIP),
        (0, 100_001, OFFLINE, CheckAction.SKIP),
    ],
)
def test_what_is_due_is_checked_until_its_checks_are_used_up(
    checks: int, now_ms: int, group: GroupState, action: CheckAction
) -> None:
    assert decide_check(transaction(checks=checks), now_ms, POLICY, group) is action


@pytest.mark.parametrize("checks", [0, 2])
@pytest.mark.parametrize("group", [BUSY, OWING])
def test_a_transaction_waits_while_nobody_of_its_group_could_answer(checks: int, group: GroupState) -> None:
    assert decide_check(transaction(checks=checks), 1000, POLICY, group) is CheckAction.HOLD


@pytest.mark.parametrize("group", [OWING, ONE_OF_TWO_OWING])
@pytest.mark.parametrize(("checks", "now_ms"), [(3, 1000), (1, 100_001)])
def test_nothing_is_given_up_while_an_answer_can_still_come(checks: int, now_ms: int, group: GroupState) -> None:
    assert decide_check(transaction(checks=checks), now_ms, POLICY, group) is CheckAction.HOLD


def test_a_half_message_is_moved_only_when_it_holds_the_queue_back_too_far() -> None:
    table = PendingTransactions(check_interval_ms=2000)
    for number in range(11):
        table.add(transaction(number, number))
    for number in range(1, 11):
        table.end(pending(table, number), State.COMMITTED, RecordOffsets(1000 + number, number - 1))

    assert must_be_put_back(table, replace(POLICY, hold_back_max=11)) is None
    assert must_be_put_back(table, POLICY) is table.find(0)


def test_many_undecided_half_messages_are_not_moved_round_and_round() -> None:
    table = PendingTransactions(check_interval_ms=2000)
    for number in range(100):
        table.add(transaction(number, number))

    assert must_be_put_back(table, POLICY) is None


def test_an_empty_table_moves_nothing() -> None:
    assert must_be_put_back(PendingTransactions(check_interval_ms=2000), POLICY) is None
