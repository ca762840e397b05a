"""Builds the messages that transitions append (states.py; RocketMQ's TransactionalMessageBridge).

    prepared         a half message: topic RMQ_SYS_TRANS_HALF_TOPIC, queue 0; its destination in REAL_TOPIC and REAL_QID
    committed        the destination topic and queue, sysFlag |= 8, preparedTransactionOffset = offset of the half message
    discarded        topic TRANS_CHECK_MAX_TIME_TOPIC, queue 0
    put back         a copy of the half message at the queue's end; TRAN_PREPARED_QUEUE_OFFSET and
                     preparedTransactionOffset refer to the first half message
    resumed          a half message made from a discarded message; it starts a new transaction

All of them keep the properties of the half message, including REAL_TOPIC and TRAN_MSG, as in RocketMQ. op_message.py builds
the op message.
"""

from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import body_crc
from rocketmq_broker.transaction.errors import DelayedTransaction
from rocketmq_broker.transaction.messages.half_message import (
    DISCARD_TOPIC,
    HALF_TOPIC,
    RESUMED_FROM,
    HalfMessage,
    find_number,
    tags_code,
)
from rocketmq_broker.transaction.pending_transaction import PendingTransaction

FIRST_OF_ALL: Final = -1
"""The preparedTransactionOffset of a copy if the first half message is at offset 0. The value 0 means that there is none."""

_DELAY = props.beginning(props.DELAY_TIME_LEVEL)


def prepared(message: InnerMessage, producer_group: str) -> InnerMessage:
    """Returns the half message for a message. Raises DelayedTransaction.

    Its sysFlag does not have the type "prepared", because the store adds no prepared records to consume queues.
    """
    encoded = half_properties(message.properties, message.topic, message.queue_id, producer_group)
    return InnerMessage(
        HALF_TOPIC,
        0,
        message.body,
        encoded,
        message.flag,
        sysflag.with_transaction(message.sys_flag, sysflag.TRANSACTION_NOT_TYPE),
        message.born_timestamp,
        message.born_host,
        message.reconsume_times,
        0,
        tags_code(props.find(encoded, props.TAGS)),
        body_crc(message.body),
    )


def half_properties(encoded: bytes, topic: bytes, queue_id: int, producer_group: str) -> bytes:
    """Returns the message's properties. Adds the destination and, if missing, the producer group.

    If several properties have the same name, the last one counts, so a client cannot set another destination. Raises
    DelayedTransaction if the message has a delay level.
    """
    if encoded.find(_DELAY) >= 0 and (find_number(encoded, props.DELAY_TIME_LEVEL) or 0) > 0:
        raise DelayedTransaction(
            "a transactional message cannot be delayed: send it without a delay level, or send it outside a transaction"
        )
    if props.find(encoded, props.PRODUCER_GROUP) is None:
        encoded = props.put(encoded, props.PRODUCER_GROUP, producer_group)
    separator = b"" if encoded.endswith(b"\x02") else b"\x02"
    return b"%b%bREAL_TOPIC\x01%b\x02REAL_QID\x01%d" % (encoded, separator, topic, queue_id)


def committed(half: HalfMessage | InnerMessage, transaction: PendingTransaction) -> InnerMessage:
    """Returns the committed message, which is delivered to consumers."""
    checks = transaction.checks
    return InnerMessage(
        transaction.topic,
        transaction.queue_id,
        half.body,
        with_check_times(half.properties, checks) if checks else half.properties,
        half.flag,
        sysflag.with_transaction(half.sys_flag, sysflag.TRANSACTION_COMMIT_TYPE),
        half.born_timestamp,
        half.born_host,
        half.reconsume_times,
        transaction.commit_log_offset,
        transaction.tags_code,
        half.body_crc,
    )


def discarded(half: HalfMessage, transaction: PendingTransaction) -> InnerMessage:
    """Returns the message for TRANS_CHECK_MAX_TIME_TOPIC, which operators and mqadmin can read."""
    properties = with_check_times(half.properties, transaction.checks)
    return _system_message(half, DISCARD_TOPIC, properties, transaction.commit_log_offset)


def put_back(half: HalfMessage, transaction: PendingTransaction, checks: int) -> InnerMessage:
    """Returns a copy for the end of the half queue. The copy contains the offsets of the first half message."""
    named = props.put_if_it_fits(half.properties, props.TRANSACTION_PREPARED_QUEUE_OFFSET, str(transaction.queue_offset))
    return _system_message(half, HALF_TOPIC, with_check_times(named, checks), transaction.commit_log_offset or FIRST_OF_ALL)


def resumed(discarded_message: HalfMessage) -> InnerMessage:
    """Returns a new half message made from a discarded message, with its check count set to 0."""
    fresh = props.remove(discarded_message.properties, (props.TRANSACTION_PREPARED_QUEUE_OFFSET,))
    fresh = props.put_if_it_fits(fresh, RESUMED_FROM, str(discarded_message.commit_log_offset))
    return _system_message(discarded_message, HALF_TOPIC, with_check_times(fresh, 0), 0)


def with_check_times(encoded: bytes, checks: int) -> bytes:
    """Returns the properties with TRANSACTION_CHECK_TIMES set to `checks`."""
    return props.put_if_it_fits(encoded, props.TRANSACTION_CHECK_TIMES, str(checks))


def _system_message(half: HalfMessage, topic: bytes, encoded_properties: bytes, prepared_transaction_offset: int) -> InnerMessage:
    return InnerMessage(
        topic,
        0,
        half.body,
        encoded_properties,
        half.flag,
        half.sys_flag,
        half.born_timestamp,
        half.born_host,
        half.reconsume_times,
        prepared_transaction_offset,
        half.tags_code(),
        half.body_crc,
    )
