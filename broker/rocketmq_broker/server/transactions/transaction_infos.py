"""Converts found transactions for responses to `python -m rocketmq_broker.admin`."""

from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol.bodies.transaction_admin import CheckBackInfo, TransactionInfo
from rocketmq_broker.server.transactions.transaction_finder import FoundDecided, FoundPending
from rocketmq_broker.transaction.checking.check_backs import CheckBack
from rocketmq_broker.transaction.errors import NotAHalfMessage
from rocketmq_broker.transaction.messages.half_message import HalfMessage
from rocketmq_broker.transaction.messages.op_message import OUTCOME, REASON
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import State

DECIDED: Final = "decided"
"""The state of a decided transaction if the broker cannot find out whether it was committed or rolled back."""


def pending_info(
    found: FoundPending, *, now_ms: int, check_max: int, is_producer_online: bool, owed_since_ms: int | None
) -> TransactionInfo:
    """Converts a pending transaction to a TransactionInfo. `owed_since_ms` is the time of the oldest unanswered check."""
    transaction = found.transaction
    info = TransactionInfo(
        State.PENDING.value,
        transaction.commit_log_offset,
        producer_group=transaction.producer_group,
        topic=transaction.topic.decode(errors="replace"),
        queue_id=transaction.queue_id,
        begun_ms=transaction.begun_ms,
        checks=transaction.checks,
        age_ms=max(0, now_ms - transaction.begun_ms),
        check_max=check_max,
        next_check_in_ms=max(0, transaction.due_ms - now_ms),
        is_producer_online=is_producer_online,
        answer_owed_ms=max(0, now_ms - owed_since_ms) if owed_since_ms is not None else None,
        problem=found.problem,
    )
    _add_message(info, found.half)
    return info


def decided_info(found: FoundDecided) -> TransactionInfo:
    """Converts a decided transaction to a TransactionInfo."""
    info = TransactionInfo(_state_of(found), found.commit_log_offset, problem=found.problem)
    half, made, op = found.half, found.made, found.op
    _add_message(info, half)
    if half is not None:
        info.begun_ms = half.store_timestamp
        info.producer_group = half.producer_group
        _add_destination(info, half)
    if made is not None:
        info.checks = made.check_times
        info.decided_ms = made.store_timestamp
        info.message_id = offset_message_id(made.store_host, made.commit_log_offset)
    if op is not None:
        info.reason = props.find(op.properties, REASON)
        info.decided_ms = op.store_timestamp
    return info


def decided_now_info(
    transaction: PendingTransaction, state: State, transaction_id: str | None, reason: str, now_ms: int
) -> TransactionInfo:
    """Returns the TransactionInfo of a transaction that an operator has just decided."""
    return TransactionInfo(
        state.value,
        transaction.commit_log_offset,
        transaction_id,
        transaction.producer_group,
        reason=reason,
        topic=transaction.topic.decode(errors="replace"),
        decided_ms=now_ms,
    )


def check_back_info(check_back: CheckBack) -> CheckBackInfo:
    """Converts a recorded check-back to a CheckBackInfo."""
    answer = _ANSWERS.get(check_back.answer) if check_back.answer is not None else None
    return CheckBackInfo(check_back.asked_ms, check_back.producer, answer, check_back.answered_ms, check_back.failure)


_ANSWERS: Final = {
    sysflag.TRANSACTION_NOT_TYPE: "UNKNOWN",
    sysflag.TRANSACTION_COMMIT_TYPE: "COMMIT",
    sysflag.TRANSACTION_ROLLBACK_TYPE: "ROLLBACK",
}


def _state_of(found: FoundDecided) -> str:
    noted = props.find(found.op.properties, OUTCOME) if found.op is not None else None
    if noted:
        return noted
    if found.state is not None:
        return found.state.value
    return DECIDED if found.half is not None else ""


def _add_message(info: TransactionInfo, half: HalfMessage | None) -> None:
    if half is None:
        return
    info.transaction_id = half.transaction_id
    info.keys = half.keys
    info.tags = half.text(props.TAGS)
    info.body_size = len(half.body)
    resumed_from = half.resumed_from
    info.resumed_from = int(resumed_from) if resumed_from is not None and resumed_from.isdigit() else None


def _add_destination(info: TransactionInfo, half: HalfMessage) -> None:
    try:
        topic, info.queue_id = half.destination()
        info.topic = topic.decode(errors="replace")
    except NotAHalfMessage as error:
        info.problem = info.problem or str(error)
