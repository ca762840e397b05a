"""The END_TRANSACTION request made from a listener's answer (RocketMQ's DefaultMQProducerImpl)."""

from __future__ import annotations

import logging
import reprlib
from typing import Final

from rocketmq_broker.client.producer.send_result import LocalTransactionState, SendResult, SendStatus
from rocketmq_broker.message import MessageExt, properties, sysflag
from rocketmq_broker.message.record import Record
from rocketmq_broker.protocol.headers import CheckTransactionStateRequestHeader, EndTransactionRequestHeader

MAX_FAILURE_LENGTH: Final = 300
"""Letters of a failure that go to the broker."""

logger = logging.getLogger(__name__)

_BITS = {
    LocalTransactionState.COMMIT_MESSAGE: sysflag.TRANSACTION_COMMIT,
    LocalTransactionState.ROLLBACK_MESSAGE: sysflag.TRANSACTION_ROLLBACK,
    LocalTransactionState.UNKNOWN: sysflag.TRANSACTION_NOT,
}


def state_without_listener(status: SendStatus) -> LocalTransactionState | None:
    """Returns the decision for a local transaction that must not run; None if it must run.

    A half message that is stored, but not as safely as asked for, may be lost with its broker: nothing must depend on it.
    """
    return None if status is SendStatus.SEND_OK else LocalTransactionState.ROLLBACK_MESSAGE


def decision_and_failure(
    answer: object, error: BaseException | None, transaction_id: str | None
) -> tuple[LocalTransactionState, str | None]:
    """Returns the listener's decision, and its failure in one line: UNKNOWN if it raised or returned another type.

    The broker will check back. The failure goes with the decision as the remark of its request, as with Apache's client, for
    people; the log has the traceback. It is None for a decision, and for an UNKNOWN on purpose.
    """
    if error is not None:
        logger.warning("the listener failed on transaction %s: the broker will check back", transaction_id, exc_info=error)
        return LocalTransactionState.UNKNOWN, f"the listener raised {type(error).__name__}: {_text_of(error)}"[
            :MAX_FAILURE_LENGTH
        ]
    if not isinstance(answer, LocalTransactionState):
        answered = reprlib.repr(answer)
        logger.warning(
            "the listener answered %s for transaction %s: that counts as UNKNOWN, and the broker will check back. "
            "A listener returns LocalTransactionState.COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOWN",
            answered,
            transaction_id,
        )
        return LocalTransactionState.UNKNOWN, f"the listener answered {answered}"[:MAX_FAILURE_LENGTH]
    return answer, None


def _text_of(error: BaseException) -> str:
    """The first line of what an error says; an application's error may fail to say anything."""
    try:
        return next(iter(str(error).splitlines()), "")
    except Exception as failed:
        return f"(its text cannot be read: {type(failed).__name__})"


def end_after_local_transaction(group: str, sent: SendResult, state: LocalTransactionState) -> EndTransactionRequestHeader:
    """Returns the decision after the local transaction, with the half message's offsets from its send response."""
    return EndTransactionRequestHeader(
        producer_group=group,
        tran_state_table_offset=sent.queue_offset,
        commit_log_offset=commit_log_offset_of(sent.offset_message_id),
        commit_or_rollback=_BITS[state],
        from_transaction_check=False,
        msg_id=sent.message_id,
        transaction_id=sent.transaction_id,
        broker_name=sent.queue.broker_name,
    )


def end_after_check(
    group: str, check: CheckTransactionStateRequestHeader, message: MessageExt, state: LocalTransactionState
) -> EndTransactionRequestHeader:
    """Returns the answer to a check-back, with the offsets of the check: the half message may have been rewritten."""
    return EndTransactionRequestHeader(
        producer_group=group,
        tran_state_table_offset=check.tran_state_table_offset,
        commit_log_offset=check.commit_log_offset,
        commit_or_rollback=_BITS[state],
        from_transaction_check=True,
        msg_id=message.properties.get(properties.UNIQUE_KEY) or message.offset_message_id,
        transaction_id=check.transaction_id,
        broker_name=check.broker_name,
    )


def end_from_outside(group: str, half: Record, transaction_id: str, state: LocalTransactionState) -> EndTransactionRequestHeader:
    """Returns the decision about a half message that was found by its transaction's id."""
    return EndTransactionRequestHeader(
        producer_group=group,
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=half.commit_log_offset,
        commit_or_rollback=_BITS[state],
        from_transaction_check=False,
        msg_id=transaction_id,
        transaction_id=transaction_id,
    )


def commit_log_offset_of(offset_message_id: str) -> int:
    """Returns the commit log offset in an offset message id with an IPv4 or IPv6 host. Raises ValueError if it is none."""
    if len(offset_message_id) not in (32, 56):
        raise ValueError(f"{offset_message_id!r} is no offset message id")
    return int(offset_message_id[-16:], 16)
