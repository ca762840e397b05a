"""The half message: a message kept where no consumer sees it, and what becomes of it (RocketMQ's TransactionalMessageBridge).

    half message     topic RMQ_SYS_TRANS_HALF_TOPIC, queue 0; its own topic and queue in REAL_TOPIC and REAL_QID
    committed        topic and queue its own again, sysFlag |= 8, preparedTransactionOffset = the half message's offset
    check-back       topic and queue its own, numbered by TRANSACTION_CHECK_TIMES; sent to a producer, never stored
    discarded        topic TRANS_CHECK_MAX_TIME_TOPIC, queue 0
    moved copy       a half message again, nearer to the queue's end; TRAN_PREPARED_QUEUE_OFFSET and
                     preparedTransactionOffset name the first one
    resumed          a half message again, made from a discarded one; a transaction of its own

All of them keep every property of the half message, REAL_TOPIC and TRAN_MSG included, as RocketMQ's do.
"""

from __future__ import annotations

from typing import Final

from broker.message import properties as props
from broker.message import record, sysflag
from broker.message.inner_message import InnerMessage
from broker.transaction.errors import DelayedTransaction
from broker.transaction.half_message import DISCARD_TOPIC, HALF_TOPIC, RESUMED_FROM, HalfMessage, find_number

FIRST_OF_ALL: Final = -1
"""In a moved copy's preparedTransactionOffset: the first half message lies at 0, which the field cannot tell from none."""

_DELAY = b"DELAY\x01"


def half_properties(encoded: bytes, topic: bytes, queue_id: int, producer_group: str) -> bytes:
    """The properties of the half message that stands for a message: its destination is added, and its group if it is missing.

    What stands last among them counts, so the destination is this one whatever the message says before.
    Raises DelayedTransaction if the message is to be delayed as well.
    """
    if encoded.find(_DELAY) >= 0 and (find_number(encoded, props.DELAY_TIME_LEVEL) or 0) > 0:
        raise DelayedTransaction("a transactional message cannot be delayed: leave out either the delay level or the transaction")
    if props.find(encoded, props.PRODUCER_GROUP) is None:
        encoded = props.put(encoded, props.PRODUCER_GROUP, producer_group)
    separator = b"" if encoded.endswith(b"\x02") else b"\x02"
    return b"%b%bREAL_TOPIC\x01%b\x02REAL_QID\x01%d" % (encoded, separator, topic, queue_id)


def half_sys_flag(sys_flag: int) -> int:
    """The half message's flag: stored without a transaction type, or the store would hide it from its own queue."""
    return sys_flag & ~sysflag.TRANSACTION_MASK


def committed(half: HalfMessage, *, topic: bytes, queue_id: int, tags_code: int, half_offset: int, checks: int) -> InnerMessage:
    """The message that consumers get. `half_offset` is the offset that the decision referred to."""
    return InnerMessage(
        topic,
        queue_id,
        half.body,
        _with_check_times(half.properties, checks) if checks else half.properties,
        half.flag,
        half.sys_flag & ~sysflag.TRANSACTION_MASK | sysflag.TRANSACTION_COMMIT,
        half.born_timestamp,
        half.born_host,
        half.reconsume_times,
        half_offset,
        tags_code,
        half.crc,
    )


def check_back(half: HalfMessage, *, commit_log_offset: int, queue_offset: int, checks: int) -> bytes:
    """The record a producer is asked about; both offsets are those that its decision shall refer to.

    Raises NotAHalfMessage if it does not say its topic.
    """
    topic, queue_id = half.destination()
    return record.encode_record(
        topic=topic,
        queue_id=queue_id,
        queue_offset=queue_offset,
        commit_log_offset=commit_log_offset,
        flag=half.flag,
        sys_flag=half.sys_flag,
        born_timestamp=half.born_timestamp,
        born_host=half.born_host,
        store_timestamp=half.store_timestamp,
        store_host=half.store_host,
        reconsume_times=half.reconsume_times,
        prepared_transaction_offset=half.prepared_transaction_offset,
        body=half.body,
        properties=_with_check_times(half.properties, checks),
        crc=half.crc,
    )


def discarded(half: HalfMessage, *, half_offset: int, checks: int) -> InnerMessage:
    """What goes to TRANS_CHECK_MAX_TIME_TOPIC, where people and mqadmin can read it."""
    return _system_message(half, DISCARD_TOPIC, _with_check_times(half.properties, checks), half_offset)


def moved(half: HalfMessage, *, first_commit_log_offset: int, first_queue_offset: int, checks: int) -> InnerMessage:
    """A copy for the half queue's end. It names the first half message twice: for RocketMQ in a property, for us in a field."""
    named = _put_if_it_fits(half.properties, props.TRANSACTION_PREPARED_QUEUE_OFFSET, first_queue_offset)
    return _system_message(half, HALF_TOPIC, _with_check_times(named, checks), first_commit_log_offset or FIRST_OF_ALL)


def resumed(discarded_message: HalfMessage) -> InnerMessage:
    """A half message made anew from a discarded one, its checks to be counted from 0."""
    fresh = props.remove(discarded_message.properties, (props.TRANSACTION_PREPARED_QUEUE_OFFSET,))
    fresh = _put_if_it_fits(fresh, RESUMED_FROM, discarded_message.commit_log_offset)
    return _system_message(discarded_message, HALF_TOPIC, _with_check_times(fresh, 0), 0)


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
        half.crc,
    )


def _with_check_times(encoded: bytes, checks: int) -> bytes:
    return _put_if_it_fits(encoded, props.TRANSACTION_CHECK_TIMES, checks)


def _put_if_it_fits(encoded: bytes, name: str, value: int) -> bytes:
    """A number among properties that may already fill all the space there is: better without it than not at all."""
    longer = props.put(encoded, name, str(value))
    return longer if len(longer) <= props.MAX_PROPERTIES_LENGTH else encoded
