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

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from broker.message import properties as props
from broker.message import record, sysflag, tags, topics
from broker.message.errors import CorruptRecord
from broker.transaction.draft import Draft
from broker.transaction.errors import DelayedTransaction, NotAHalfMessage

HALF_TOPIC: Final = topics.HALF_TOPIC.encode()
DISCARD_TOPIC: Final = topics.CHECK_MAX_TIME_TOPIC.encode()

RESUMED_FROM: Final = "RESUMED_FROM"
"""A property of ours in a resumed message."""

FIRST_OF_ALL: Final = -1
"""In a moved copy's preparedTransactionOffset: the first half message lies at 0, which the field cannot tell from none."""

_TRANSACTIONAL = b"TRAN_MSG\x01"
_DELAY = b"DELAY\x01"
_REAL = b"REAL_"

# The head of a record whose hosts are IPv4 addresses, as broker.message.record draws it.
_HEAD_V4 = struct.Struct(">iiiiiqqiq8sq8siqi")
_UINT16 = struct.Struct(">H")
_HOSTS_V6 = sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6


class HalfMessage(NamedTuple):
    """A record of the half topic, or of the discard topic, its strings left as bytes."""

    topic: bytes
    queue_offset: int
    commit_log_offset: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    crc: int
    body: bytes
    properties: bytes

    @property
    def producer_group(self) -> str:
        """The group that decides; empty if the message does not say."""
        return find_group(self.properties)

    @property
    def transaction_id(self) -> str | None:
        """The producer's id of the message, which is its transaction's as well."""
        return props.find(self.properties, props.UNIQUE_KEY)

    @property
    def check_times(self) -> int | None:
        """How often it had been checked when it was written; None if it was never rewritten or resumed."""
        return _number(self.properties, props.TRANSACTION_CHECK_TIMES)

    @property
    def first_queue_offset(self) -> int | None:
        """Of a copy: the half queue offset of the first one, where the copy tells."""
        return _number(self.properties, props.TRANSACTION_PREPARED_QUEUE_OFFSET)

    @property
    def first_commit_log_offset(self) -> int | None:
        """Of a copy of ours: the commit log offset of the first one."""
        return max(self.prepared_transaction_offset, 0) if self.prepared_transaction_offset else None

    @property
    def resumed_from(self) -> str | None:
        """The commit log offset of the discarded message that this one was made from, or its half message was."""
        return props.find(self.properties, RESUMED_FROM)

    @property
    def origin(self) -> tuple[str | None, str, int]:
        """Which message it was that a producer sent. One that sends the same message twice changes the born timestamp."""
        return self.transaction_id, self.producer_group, self.born_timestamp

    @property
    def identity(self) -> tuple[str | None, str, int, str | None]:
        """What copies of one half message share, and the messages made from it."""
        return (*self.origin, self.resumed_from)

    def destination(self) -> tuple[bytes, int]:
        """The message's own topic and queue id. Raises NotAHalfMessage if it does not say."""
        topic = props.find(self.properties, props.REAL_TOPIC)
        queue_id = _number(self.properties, props.REAL_QUEUE_ID)
        if not topic or queue_id is None or queue_id < 0:
            raise NotAHalfMessage(f"the half message at {self.commit_log_offset} does not say which topic and queue it is for")
        return topic.encode(), queue_id

    def tags_code(self) -> int:
        """The hash of its tag."""
        return tags_code(find_tag(self.properties))


def is_transactional(encoded_properties: bytes) -> bool:
    """Whether a message that is sent begins a transaction: TRAN_MSG is true."""
    if _TRANSACTIONAL not in encoded_properties:
        return False
    return (props.find(encoded_properties, props.TRANSACTION_PREPARED) or "").lower() == "true"


def half_properties(encoded: bytes, topic: bytes, queue_id: int, producer_group: str) -> bytes:
    """The properties of the half message that stands for a message: its destination is added, and its group if it is missing.

    Raises DelayedTransaction if the message is to be delayed as well.
    """
    if _DELAY in encoded and (_number(encoded, props.DELAY_TIME_LEVEL) or 0) > 0:
        raise DelayedTransaction("a transactional message cannot be delayed: leave out either the delay level or the transaction")
    if _REAL in encoded:
        encoded = props.remove(encoded, (props.REAL_TOPIC, props.REAL_QUEUE_ID))
    if props.find(encoded, props.PRODUCER_GROUP) is None:
        encoded = props.put(encoded, props.PRODUCER_GROUP, producer_group)
    separator = b"" if encoded.endswith(b"\x02") else b"\x02"
    return b"%b%bREAL_TOPIC\x01%b\x02REAL_QID\x01%d" % (encoded, separator, topic, queue_id)


def half_sys_flag(sys_flag: int) -> int:
    """The half message's flag: stored without a transaction type, or the store would hide it from its own queue."""
    return sys_flag & ~sysflag.TRANSACTION_MASK


def read_half_message(data: bytes) -> HalfMessage:
    """The half message, or discarded one, that a record holds. Raises CorruptRecord, or NotAHalfMessage for other topics."""
    half = _read(data)
    if half.topic != HALF_TOPIC and half.topic != DISCARD_TOPIC:
        raise NotAHalfMessage(f"the record at {half.commit_log_offset} is a message of {half.topic.decode(errors='replace')}")
    return half


def read_any_message(data: bytes) -> HalfMessage:
    """The same of a record of any topic: of a committed message, for one. Raises CorruptRecord."""
    return _read(data)


def committed(half: HalfMessage, *, topic: bytes, queue_id: int, tags_code: int, half_offset: int, checks: int) -> Draft:
    """The message that consumers get. `half_offset` is the offset that the decision referred to."""
    return Draft(
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


def discarded(half: HalfMessage, *, half_offset: int, checks: int) -> Draft:
    """What goes to TRANS_CHECK_MAX_TIME_TOPIC, where people and mqadmin can read it."""
    return _system_draft(half, DISCARD_TOPIC, _with_check_times(half.properties, checks), half_offset)


def moved(half: HalfMessage, *, first_commit_log_offset: int, first_queue_offset: int, checks: int) -> Draft:
    """A copy for the half queue's end. It names the first half message twice: for RocketMQ in a property, for us in a field."""
    named = _put_if_it_fits(half.properties, props.TRANSACTION_PREPARED_QUEUE_OFFSET, first_queue_offset)
    return _system_draft(half, HALF_TOPIC, _with_check_times(named, checks), first_commit_log_offset or FIRST_OF_ALL)


def resumed(discarded_message: HalfMessage) -> Draft:
    """A half message made anew from a discarded one, its checks to be counted from 0."""
    fresh = props.remove(discarded_message.properties, (props.TRANSACTION_PREPARED_QUEUE_OFFSET,))
    fresh = _put_if_it_fits(fresh, RESUMED_FROM, discarded_message.commit_log_offset)
    return _system_draft(discarded_message, HALF_TOPIC, _with_check_times(fresh, 0), 0)


def find_group(encoded: bytes) -> str:
    """The producer group among the properties; empty if there is none."""
    return props.find(encoded, props.PRODUCER_GROUP) or ""


def find_tag(encoded: bytes) -> str | None:
    """The tag among the properties."""
    return props.find(encoded, props.TAGS)


@lru_cache(maxsize=1024)
def tags_code(tag: str | None) -> int:
    """The hash of a tag, remembered: a topic has few tags."""
    return tags.tags_code(tag)


def _system_draft(half: HalfMessage, topic: bytes, encoded_properties: bytes, prepared_transaction_offset: int) -> Draft:
    return Draft(
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


def _number(encoded: bytes, name: str) -> int | None:
    text = props.find(encoded, name)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _read(data: bytes) -> HalfMessage:
    try:
        (
            size, magic, crc, _, flag, queue_offset, commit_log_offset, sys_flag, born_timestamp, born_host,
            store_timestamp, store_host, reconsume_times, prepared_transaction_offset, body_length,
        ) = _HEAD_V4.unpack_from(data)  # fmt: skip
        if sys_flag & _HOSTS_V6:
            return _from_record(record.decode_record(data))
        body_end = _HEAD_V4.size + body_length
        topic_end = body_end + 1 + data[body_end]
        (properties_length,) = _UINT16.unpack_from(data, topic_end)
    except (struct.error, IndexError) as error:
        raise CorruptRecord(f"no whole record: {error}") from None
    if magic != record.MESSAGE_MAGIC or size > len(data) or topic_end + 2 + properties_length != size or body_length < 0:
        raise CorruptRecord("no whole record: its parts do not add up")
    return HalfMessage(
        data[body_end + 1 : topic_end],
        queue_offset,
        commit_log_offset,
        flag,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        crc,
        data[_HEAD_V4.size : body_end],
        data[topic_end + 2 : size],
    )


def _from_record(decoded: record.Record) -> HalfMessage:
    return HalfMessage(
        decoded.topic,
        decoded.queue_offset,
        decoded.commit_log_offset,
        decoded.flag,
        decoded.sys_flag,
        decoded.born_timestamp,
        decoded.born_host,
        decoded.store_timestamp,
        decoded.store_host,
        decoded.reconsume_times,
        decoded.prepared_transaction_offset,
        decoded.body_crc,
        decoded.body,
        decoded.properties,
    )
