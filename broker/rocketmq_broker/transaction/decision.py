"""Decisions about a transaction when its producer answers, and when no answer comes. The caller carries them out.

The first decision wins (RocketMQ's EndTransactionProcessor lets every one win), and each refusal has its reason.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from rocketmq_broker.message import sysflag
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.messages.half_message import HALF_TOPIC, HalfMessage
from rocketmq_broker.transaction.pending import PendingTransactions
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import State


class EndAction(Enum):
    """The result of an END_TRANSACTION request."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    KEEP = "keep"
    """The producer does not know yet."""
    REFUSE = "refuse"
    LOOK_UP = "look up"
    """The table has no transaction at that offset: read the record there and call `decide_late_end`."""


class Refusal(Enum):
    """The reason why a decision does not count; the value names it in metrics."""

    PRODUCER_GROUP = "producer_group"
    STATE_TABLE_OFFSET = "state_table_offset"
    COMMIT_LOG_OFFSET = "commit_log_offset"
    NOT_FOUND = "not_found"
    ALREADY_COMMITTED = "already_committed"
    ALREADY_ROLLED_BACK = "already_rolled_back"
    ALREADY_DISCARDED = "already_discarded"
    ALREADY_DECIDED = "already_decided"
    """Decided so long ago that the broker has forgotten the outcome."""


class EndRequest(NamedTuple):
    """A producer's request (EndTransactionRequestHeader)."""

    commit_or_rollback: int
    """TRANSACTION_NOT, TRANSACTION_COMMIT or TRANSACTION_ROLLBACK (sysflag): the header refuses all others."""
    commit_log_offset: int
    queue_offset: int
    producer_group: str


class EndDecision(NamedTuple):
    """The answer to an EndRequest. COMMIT and ROLLBACK have a `transaction`, REFUSE has `refusal` and `remark`."""

    action: EndAction
    transaction: PendingTransaction | None = None
    refusal: Refusal | None = None
    remark: str = ""


_KEEP = EndDecision(EndAction.KEEP)
_LOOK_UP = EndDecision(EndAction.LOOK_UP)
_ALREADY = {
    State.COMMITTED: Refusal.ALREADY_COMMITTED,
    State.ROLLED_BACK: Refusal.ALREADY_ROLLED_BACK,
    State.DISCARDED: Refusal.ALREADY_DISCARDED,
    State.LOST: Refusal.ALREADY_DECIDED,
}


def decide_end(table: PendingTransactions, request: EndRequest) -> EndDecision:
    """Decides an END_TRANSACTION request by the table."""
    if request.commit_or_rollback == sysflag.TRANSACTION_NOT:
        return _KEEP
    transaction = table.find(request.commit_log_offset)
    if transaction is not None:
        return _decide(request, transaction, transaction.queue_offset)
    copy = table.copies.find(request.commit_log_offset)
    if copy is not None:
        return _decide(request, *copy)
    state = table.ended.state_of(request.commit_log_offset)
    if state is not None:
        return _refuse(_ALREADY[state], f"the transaction is {state.value} already; its first decision counts")
    return _LOOK_UP


def decide_late_end(table: PendingTransactions, request: EndRequest, half: HalfMessage | None) -> EndDecision:
    """Decides a request about which the table knows nothing. `half`: the record at its offset, if it can be read."""
    if half is None:
        return _refuse(Refusal.NOT_FOUND, f"there is no half message at commit log offset {request.commit_log_offset}")
    if half.topic != HALF_TOPIC:
        return _refuse(
            Refusal.COMMIT_LOG_OFFSET, f"the commit log offset is wrong: at {request.commit_log_offset} is no half message"
        )
    if half.producer_group != request.producer_group:
        return _wrong_group(request, half.producer_group)
    if half.queue_offset != request.queue_offset:
        return _wrong_queue_offset(request, half.queue_offset)
    transaction = table.copies.find_unread(half)
    if transaction is not None:
        return _decide(request, transaction, half.queue_offset)
    return _refuse(Refusal.ALREADY_DECIDED, "the transaction is decided already; its first decision counts")


def _decide(request: EndRequest, transaction: PendingTransaction, queue_offset: int) -> EndDecision:
    if request.producer_group != transaction.producer_group:
        return _wrong_group(request, transaction.producer_group)
    if request.queue_offset != queue_offset:
        return _wrong_queue_offset(request, queue_offset)
    is_commit = request.commit_or_rollback == sysflag.TRANSACTION_COMMIT
    return EndDecision(EndAction.COMMIT if is_commit else EndAction.ROLLBACK, transaction)


def _wrong_group(request: EndRequest, group: str) -> EndDecision:
    return _refuse(
        Refusal.PRODUCER_GROUP, f"the producer group is wrong: {request.producer_group} decides about a message of {group}"
    )


def _wrong_queue_offset(request: EndRequest, queue_offset: int) -> EndDecision:
    return _refuse(
        Refusal.STATE_TABLE_OFFSET,
        f"the transaction state table offset is wrong: {request.queue_offset} where the half message has {queue_offset}",
    )


def _refuse(refusal: Refusal, remark: str) -> EndDecision:
    return EndDecision(EndAction.REFUSE, None, refusal, remark)


class CheckAction(Enum):
    """The action for a transaction that is due."""

    NO_PRODUCER = "no producer"
    """No producer of the group is online. No check is used up."""
    CHECK_BACK = "check back"
    HOLD = "hold"
    """No producer of the group could answer one more check now. No check is used up."""
    DISCARD = "discard"
    """All checks are used up."""
    SKIP = "skip"
    """The transaction is too old: it is discarded, though its checks are not used up."""


class GroupState(NamedTuple):
    """The present ability of a transaction's producer group to answer."""

    is_online: bool
    """Whether the group has any member."""
    can_be_asked: bool
    """Whether a member reads its messages, owes no answer about the transaction, and not too many others."""
    owes_answer: bool
    """Whether a member was asked about it and its time to answer is not over."""


def decide_check(transaction: PendingTransaction, now_ms: int, policy: CheckPolicy, group: GroupState) -> CheckAction:
    """Decides about a transaction that is due (RocketMQ's TransactionalMessageServiceImpl.check).

    It is due once time-out or immunity are over (CheckPolicy.first_check_due) and then at every interval. RocketMQ asks, counts
    and discards whether or not an answer can come; here a check that nobody could answer does not count. A transaction is
    discarded when it is too old, but its group is first asked once if it is online; RocketMQ does not ask then. `now_ms` must
    be a trustworthy time (ExpiryClock): a discard cannot be undone.
    """
    are_checks_used_up = transaction.checks >= policy.check_max
    was_never_asked = not transaction.checks and group.is_online
    is_too_old = now_ms - transaction.begun_ms > policy.file_reserved_ms and not was_never_asked
    if are_checks_used_up or is_too_old:
        if group.owes_answer:
            return CheckAction.HOLD
        return CheckAction.DISCARD if are_checks_used_up else CheckAction.SKIP
    if group.can_be_asked:
        return CheckAction.CHECK_BACK
    return CheckAction.HOLD if group.is_online else CheckAction.NO_PRODUCER


def must_be_put_back(table: PendingTransactions, policy: CheckPolicy) -> PendingTransaction | None:
    """Returns the transaction to put back, because its half message holds the consumer offset too far behind the queue's end.

    The distance allowed grows with the number of pending ones, so that of five half messages at most one is a copy.
    """
    oldest = table.oldest()
    if oldest is None:
        return None
    return oldest if table.behind_newest(oldest) > max(policy.hold_back_max, 4 * len(table)) else None
