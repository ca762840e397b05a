"""Converts a listener's result to an END_TRANSACTION request (RocketMQ's DefaultMQProducerImpl)."""

import logging
import reprlib
from typing import Final

from rocketmq_broker.client.producer.send_result import LocalTransactionState, SendResult, SendStatus
from rocketmq_broker.message import MessageExt, properties, sysflag
from rocketmq_broker.message.record import Record
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader

MAX_FAILURE_LENGTH: Final = 300
"""The maximum number of characters of an error text that is sent to the broker."""

logger = logging.getLogger(__name__)

_BITS = {
    LocalTransactionState.COMMIT_MESSAGE: sysflag.TRANSACTION_COMMIT_TYPE,
    LocalTransactionState.ROLLBACK_MESSAGE: sysflag.TRANSACTION_ROLLBACK_TYPE,
    LocalTransactionState.UNKNOWN: sysflag.TRANSACTION_NOT_TYPE,
}


def state_without_listener(status: SendStatus) -> LocalTransactionState | None:
    """Returns ROLLBACK_MESSAGE if the local transaction must not run, and None if it must run.

    The local transaction must not run if the half message is stored less safely than configured and might be lost.
    """
    return None if status is SendStatus.SEND_OK else LocalTransactionState.ROLLBACK_MESSAGE


def decision_and_failure(
    answer: object, error: BaseException | None, transaction_id: str | None
) -> tuple[LocalTransactionState, str | None]:
    """Returns the listener's decision, and its error in one line or None.

    The decision is UNKNOWN if the listener raised an exception or returned another type, so that the broker checks back.
    The error is sent as the remark of the request, as in Apache's client. The traceback is logged.
    """
    if error is not None:
        logger.warning("the listener failed on transaction %s: the broker will check back", transaction_id, exc_info=error)
        return LocalTransactionState.UNKNOWN, f"the listener raised {type(error).__name__}: {_text_of(error)}"[
            :MAX_FAILURE_LENGTH
        ]
    if not isinstance(answer, LocalTransactionState):
        answered = reprlib.repr(answer)
        logger.warning(
            "the listener returned %s for transaction %s, which counts as UNKNOWN: "
            "return LocalTransactionState.COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOWN",
            answered,
            transaction_id,
        )
        return LocalTransactionState.UNKNOWN, f"the listener returned {answered}"[:MAX_FAILURE_LENGTH]
    return answer, None


def _text_of(error: BaseException) -> str:
    """Returns the first line of the error's text. Does not raise if the error's own `__str__` raises."""
    try:
        return next(iter(str(error).splitlines()), "")
    except Exception as failed:
        return f"(its text cannot be read: {type(failed).__name__})"


def end_after_local_transaction(group: str, sent: SendResult, state: LocalTransactionState) -> EndTransactionRequestHeader:
    """Returns the END_TRANSACTION request after the local transaction, with the half message's offsets from the send response."""
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
    """Returns the END_TRANSACTION request that answers a check-back.

    It contains the offsets from the check-back, because the half message may have been rewritten since it was sent.
    """
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
    """Returns the END_TRANSACTION request for a half message that `HalfSearch` found."""
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
    """Returns the commit log offset in an offset message id with an IPv4 or IPv6 host. Raises ValueError if it is invalid."""
    if len(offset_message_id) not in (32, 56):
        raise ValueError(f"offset message id must have 32 or 56 characters: {offset_message_id!r}")
    return int(offset_message_id[-16:], 16)
