"""Decides what to do when a producer ends a transaction, and when a transaction's check is due. The caller executes the decision.

Only the first decision about a transaction counts. Later ones are refused with a reason. RocketMQ's EndTransactionProcessor
executes every decision.
"""

from enum import Enum
from typing import NamedTuple

from rocketmq_broker.message import sysflag
from rocketmq_broker.transaction.checking.check_policy import CheckPolicy
from rocketmq_broker.transaction.messages.half_message import HALF_TOPIC, HalfMessage
from rocketmq_broker.transaction.pending import PendingTransactions
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import State


class EndAction(Enum):
    """The action for an END_TRANSACTION request."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    KEEP = "keep"
    """The producer has not decided yet, so the transaction stays pending."""
    REFUSE = "refuse"
    LOOK_UP = "look up"
    """The table has no transaction with that offset. The caller must read the record there and call `decide_late_end`."""


class Refusal(Enum):
    """The reason why a decision is refused. The value is used in metrics."""

    PRODUCER_GROUP = "producer_group"
    STATE_TABLE_OFFSET = "state_table_offset"
    COMMIT_LOG_OFFSET = "commit_log_offset"
    NOT_FOUND = "not_found"
    ALREADY_COMMITTED = "already_committed"
    ALREADY_ROLLED_BACK = "already_rolled_back"
    ALREADY_DISCARDED = "already_discarded"
    ALREADY_DECIDED = "already_decided"
    """The transaction was decided so long ago that the broker no longer keeps the outcome."""


class EndRequest:
    """A producer's request to end a transaction (EndTransactionRequestHeader)."""

    __slots__ = ("commit_log_offset", "commit_or_rollback", "producer_group", "queue_offset")

    def __init__(self, commit_or_rollback: int, commit_log_offset: int, queue_offset: int, producer_group: str) -> None:
        """`commit_or_rollback` is TRANSACTION_NOT_TYPE, _COMMIT_TYPE or _ROLLBACK_TYPE (sysflag).

        The header's decoder refuses other values.
        """
        self.commit_or_rollback = commit_or_rollback
        self.commit_log_offset = commit_log_offset
        self.queue_offset = queue_offset
        self.producer_group = producer_group


class EndDecision:
    """The decision about an EndRequest. COMMIT and ROLLBACK have a `transaction`. REFUSE has a `refusal` and a `remark`."""

    __slots__ = ("action", "refusal", "remark", "transaction")

    def __init__(
        self,
        action: EndAction,
        transaction: PendingTransaction | None = None,
        refusal: Refusal | None = None,
        remark: str = "",
    ) -> None:
        """`remark` is empty unless the request is refused."""
        self.action = action
        self.transaction = transaction
        self.refusal = refusal
        self.remark = remark


_KEEP = EndDecision(EndAction.KEEP)
_LOOK_UP = EndDecision(EndAction.LOOK_UP)
_ALREADY = {
    State.COMMITTED: Refusal.ALREADY_COMMITTED,
    State.ROLLED_BACK: Refusal.ALREADY_ROLLED_BACK,
    State.DISCARDED: Refusal.ALREADY_DISCARDED,
    State.LOST: Refusal.ALREADY_DECIDED,
}


def decide_end(table: PendingTransactions, request: EndRequest) -> EndDecision:
    """Returns the decision about a request. Uses only the table of pending transactions."""
    if request.commit_or_rollback == sysflag.TRANSACTION_NOT_TYPE:
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
    """Returns the decision about a request whose transaction is not in the table.

    `half` is the record at the request's commit log offset, or None if it cannot be read.
    """
    if half is None:
        return _refuse(Refusal.NOT_FOUND, f"no half message at commit log offset {request.commit_log_offset}")
    if half.topic != HALF_TOPIC:
        return _refuse(
            Refusal.COMMIT_LOG_OFFSET, f"wrong commit log offset: the record at {request.commit_log_offset} is not a half message"
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
    is_commit = request.commit_or_rollback == sysflag.TRANSACTION_COMMIT_TYPE
    return EndDecision(EndAction.COMMIT if is_commit else EndAction.ROLLBACK, transaction)


def _wrong_group(request: EndRequest, group: str) -> EndDecision:
    return _refuse(Refusal.PRODUCER_GROUP, f"wrong producer group: {request.producer_group}; the half message belongs to {group}")


def _wrong_queue_offset(request: EndRequest, queue_offset: int) -> EndDecision:
    return _refuse(
        Refusal.STATE_TABLE_OFFSET,
        f"wrong transaction state table offset: {request.queue_offset}; the half message has {queue_offset}",
    )


def _refuse(refusal: Refusal, remark: str) -> EndDecision:
    return EndDecision(EndAction.REFUSE, None, refusal, remark)


class CheckAction(Enum):
    """The action for a transaction whose check is due."""

    NO_PRODUCER = "no producer"
    """Send no check, because no producer of the group is online. The check is not counted."""
    CHECK_BACK = "check back"
    HOLD = "hold"
    """Wait, because no producer of the group can take another check now. The check is not counted."""
    DISCARD = "discard"
    """Discard the transaction, because the maximum number of checks is reached."""
    SKIP = "skip"
    """Discard the transaction because of its age, although the maximum number of checks is not reached."""


class GroupState(NamedTuple):
    """The state of a transaction's producer group: whether a producer is online and can receive a check now."""

    is_online: bool
    """True if the group has a connected producer."""
    can_be_asked: bool
    """True if a producer reads its messages, has no unanswered check of the transaction, and is below the limit of checks."""
    owes_answer: bool
    """True if a producer has an unanswered check of the transaction that is not overdue."""


def decide_check(transaction: PendingTransaction, now_ms: int, policy: CheckPolicy, group: GroupState) -> CheckAction:
    """Returns the action for a transaction that is due (RocketMQ's TransactionalMessageServiceImpl.check).

    A transaction is due after its timeout or immunity time (CheckPolicy.first_check_due), and then at every interval. Unlike in
    RocketMQ, a check is counted only if it can be sent to a producer. If the group is online, a transaction is checked
    at least once before it is discarded because of its age. RocketMQ does not ensure this. `now_ms` must be a reliable time
    (ExpiryClock), because a discard cannot be undone.
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
    """Returns the oldest transaction if its half message is too far from the end of the half queue, otherwise None.

    The allowed distance grows with the number of pending transactions, so that at most one of five half messages is a copy.
    """
    oldest = table.oldest()
    if oldest is None:
        return None
    return oldest if table.behind_newest(oldest) > max(policy.hold_back_max, 4 * len(table)) else None
