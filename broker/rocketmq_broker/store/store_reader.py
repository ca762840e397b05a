"""The reading methods of a store. They find messages by commit log offset, queue offset, time or key."""

from collections.abc import Generator
from dataclasses import replace
from typing import Final

from rocketmq_broker.message import properties as message_properties
from rocketmq_broker.message.steps import finish
from rocketmq_broker.message.times import FOREVER_MS
from rocketmq_broker.store.errors import RecordNotFound, UnreadableRecord
from rocketmq_broker.store.index.index import MAX_FOUND, Index
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.queues.consume_queue import ConsumeQueue, Unit
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.queues.filtered_read import RecordFilter
from rocketmq_broker.store.queues.pull import pull_messages
from rocketmq_broker.store.recovery.damaged_units import DamagedUnits, Search, find_message
from rocketmq_broker.store.results import GetMessageStatus, PulledMessages, QueriedMessages

_MAX_UNITS_EXAMINED: Final = 800


class StoreReader:
    """The reading methods of `MessageStore`. They return only intact records, and by queue or key only published records."""

    def __init__(self, log: CommitLog, queues: ConsumeQueueTable, index: Index, damaged_units: DamagedUnits) -> None:
        """Creates a reader of these parts. `damaged_units` repairs the consume queue units that a pull finds damaged."""
        self._damaged_units = damaged_units
        self._log = log
        self._queues = queues
        self._index = index

    def read(self, commit_log_offset: int) -> bytes:
        """Returns one record. Raises RecordNotFound if it is not written yet, and RecordLost if it has expired or is damaged."""
        return self._log.read(commit_log_offset)[0]

    def read_queued(self, commit_log_offset: int) -> bytes:
        """Returns the message at an offset that a client sent. Raises the errors of `read`.

        Also raises RecordNotFound if no consume queue contains the message, because a client can forge a record inside a
        message's body.
        """
        record, checked = self._log.read(commit_log_offset)
        queue = self._queues.find(checked.topic, checked.queue_id)
        if queue is None or not self._shows(queue, checked.queue_offset, commit_log_offset):
            raise RecordNotFound(f"no consume queue contains a message at commit log offset {commit_log_offset}")
        return record

    def _shows(self, queue: ConsumeQueue, queue_offset: int, commit_log_offset: int) -> bool:
        """Returns whether the message at a queue offset is the record at a commit log offset."""
        if not queue.min_offset <= queue_offset < queue.max_offset:
            return False
        unit = queue.unit(queue_offset)
        if unit is not None and unit.commit_log_offset == commit_log_offset:
            return True
        return find_message(self._log, queue, queue_offset) == commit_log_offset  # if the queue's unit is damaged

    def pull(
        self,
        topic: bytes,
        queue_id: int,
        offset: int,
        max_messages: int,
        max_bytes: int,
        tags_codes: frozenset[int] | None = None,
        record_filter: RecordFilter | None = None,
    ) -> PulledMessages:
        """Returns the intact messages of a queue from an offset (DefaultMessageStore.getMessage).

        `tags_codes` selects messages by tags code, and `record_filter` by properties. The first message is returned even if it is
        larger than `max_bytes`.
        """
        queue = self._queues.find(topic, queue_id)
        if queue is None or queue.max_offset == 0:
            return PulledMessages(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        pulled = pull_messages(self._log, queue, offset, max_messages, max_bytes, tags_codes, record_filter)
        search = Search()
        while pulled.damaged_at == offset:
            next_offset = self._damaged_units.repair(queue, offset, search)
            if next_offset >= queue.max_offset or (search.is_over and next_offset > offset):
                return replace(pulled.messages, next_begin_offset=next_offset)
            offset = next_offset
            pulled = pull_messages(self._log, queue, offset, max_messages, max_bytes, tags_codes, record_filter)
        return pulled.messages

    def min_offset(self, topic: bytes, queue_id: int) -> int:
        """Returns the first queue offset, or 0 for a queue without messages."""
        queue = self._queues.find(topic, queue_id)
        return queue.min_offset if queue else 0

    def max_offset(self, topic: bytes, queue_id: int) -> int:
        """Returns the queue offset after the last visible message."""
        queue = self._queues.find(topic, queue_id)
        return queue.max_offset if queue else 0

    def commit_log_offset(self, topic: bytes, queue_id: int, queue_offset: int) -> int | None:
        """Returns the commit log offset of the message at a queue offset, or None if there is none."""
        queue = self._queues.find(topic, queue_id)
        unit = queue.unit(queue_offset) if queue else None
        return unit.commit_log_offset if unit else None

    def consume_queue_units(self, topic: bytes, queue_id: int, queue_offset: int, count: int) -> list[Unit] | None:
        """Returns at most `count` units of a consume queue from an offset, or None if the queue has no unit at that offset."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or queue.unit(queue_offset) is None:
            return None
        return queue.units(queue_offset, count)

    def tags_codes(self, topic: bytes, queue_id: int, first_offset: int, end_offset: int) -> set[int] | None:
        """Returns the tags codes of the queue's messages from `first_offset` up to, but not including, `end_offset`.

        Returns None if the range is too long, or if one of its units is damaged.
        """
        queue = self._queues.find(topic, queue_id)
        if queue is None or not first_offset <= end_offset <= first_offset + _MAX_UNITS_EXAMINED:
            return None
        units = queue.units(first_offset, end_offset - first_offset)
        if len(units) < end_offset - first_offset or not all(unit.holds_message for unit in units):
            return None
        return {unit.tags_code for unit in units}

    def end_of_topic(self, topic: bytes) -> int:
        """Returns the commit log offset after the last message in the topic's queues, or 0 if they are empty."""
        return max((queue.max_commit_log_offset for queue in self._queues if queue.topic == topic), default=0)

    def store_time(self, topic: bytes, queue_id: int, queue_offset: int) -> int:
        """Returns the message's store timestamp in milliseconds since the epoch, or -1 if unknown (getMessageStoreTimeStamp)."""
        commit_log_offset = self.commit_log_offset(topic, queue_id, queue_offset)
        return -1 if commit_log_offset is None else self._log.store_timestamp(commit_log_offset)

    def earliest_store_time(self) -> int:
        """Returns the store timestamp of the oldest message in milliseconds since the epoch, or -1 if unknown."""
        return self._log.store_timestamp(self._log.min_offset)

    def offset_by_time(self, topic: bytes, queue_id: int, timestamp_ms: int) -> int:
        """Returns the queue offset of the message whose store timestamp is nearest to a time (getOffsetInQueueByTime)."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or queue.max_offset <= queue.min_offset:
            return 0
        after = queue.find_first(lambda unit: self._log.store_timestamp(unit.commit_log_offset) >= timestamp_ms)
        if after >= queue.max_offset:
            return queue.max_offset - 1
        if after == queue.min_offset:
            return after
        later = self.store_time(topic, queue_id, after) - timestamp_ms
        earlier = timestamp_ms - self.store_time(topic, queue_id, after - 1)
        return after if later == 0 or earlier > later else after - 1

    def first_after(self, topic: bytes, queue_id: int, commit_log_offset: int) -> int:
        """Returns the queue offset of the first message stored after `commit_log_offset`, or `max_offset` if there is none."""
        queue = self._queues.find(topic, queue_id)
        return queue.find_first(lambda unit: unit.commit_log_offset > commit_log_offset) if queue else 0

    def query(
        self,
        topic: bytes,
        key: str,
        max_messages: int = MAX_FOUND,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
        max_bytes: int | None = None,
    ) -> QueriedMessages:
        """Returns the newest messages with this key or unique id, oldest first.

        Only messages stored from `begin_ms` to `end_ms` are found.

        Returns at most `max_bytes` bytes, but at least one message if there is any (DefaultMessageStore.queryMessage).
        """
        return finish(self.query_in_steps(topic, key, max_messages, begin_ms, end_ms, max_bytes))

    def query_in_steps(
        self, topic: bytes, key: str, max_messages: int, begin_ms: int, end_ms: int, max_bytes: int | None = None
    ) -> Generator[None, None, QueriedMessages]:
        """Runs `query` in steps of a millisecond or less. The store may be used between two steps. Raises OSError."""
        found: list[int] = []
        for offset in self._index.find(topic, key, max_messages, begin_ms, end_ms):
            if offset is None:
                yield
            else:
                found.append(offset)
        records: list[bytes] = []
        size = 0
        are_all = len(found) < min(max_messages, MAX_FOUND)
        for commit_log_offset in sorted(set(found)):
            record = self._read_with_key(commit_log_offset, topic, key)
            if record is not None:
                size += len(record)
                if records and max_bytes is not None and size > max_bytes:
                    are_all = False
                    break
                records.append(record)
            yield
        return QueriedMessages(records, self._index.end_timestamp, self._index.end_offset, are_all)

    def _read_with_key(self, commit_log_offset: int, topic: bytes, key: str) -> bytes | None:
        """Returns the record, or None if it is unreadable or has another topic or key.

        The check is needed because the index contains only hashes.
        """
        try:
            record, checked = self._log.read(commit_log_offset)
        except UnreadableRecord:
            return None
        return record if checked.topic == topic and _has_key(checked.properties, key) else None

    @property
    def commit_log_min_offset(self) -> int:
        """Returns the commit log offset of the first byte that has not been deleted."""
        return self._log.min_offset

    @property
    def commit_log_max_offset(self) -> int:
        """Returns the commit log offset after the last written record."""
        return self._log.written_position

    def queues(self) -> dict[bytes, list[int]]:
        """Returns the ids of each topic's queues. Topics without queues are omitted."""
        return self._queues.names()


def _has_key(properties: bytes, key: str) -> bool:
    if message_properties.find(properties, message_properties.UNIQUE_KEY) == key:
        return True
    return key in (message_properties.find(properties, message_properties.KEYS) or "").split(message_properties.KEY_SEPARATOR)
