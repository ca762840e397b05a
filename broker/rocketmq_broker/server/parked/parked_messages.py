"""Tracks parked messages, which are dead letters and discarded messages, and the marks that operators added to them."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.dead_letters import group_of
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import Record, decode_record
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.server.parked.mark import (
    MARK_TOPIC,
    Mark,
    NotAMark,
    ParkedPlace,
    Treatment,
    mark_body,
    mark_properties,
    read_mark,
)
from rocketmq_broker.server.parked.parked_queue import ParkedQueue
from rocketmq_broker.server.ports import SystemTopics
from rocketmq_broker.server.pulling.queue_records import records_from
from rocketmq_broker.store import Appended, MessageStore, UnreadableRecord

logger = logging.getLogger(__name__)

DISCARD_TOPIC: Final = topics.CHECK_MAX_TIME_TOPIC.encode()
DEAD_LETTERS: Final = topics.DEAD_LETTER_PREFIX.encode()

AT_MOST_AT_ONCE: Final = 100
"""The maximum number of records that are read in one turn of the event loop."""
MAX_MARKS_SHOWN: Final = 64

_OF_INTEREST: Final = (DEAD_LETTERS, DISCARD_TOPIC, MARK_TOPIC)
_PULL_MESSAGES: Final = 32
_PULL_BYTES: Final = 1 << 20

_Key = tuple[bytes, int]
"""A topic and the id of one of its queues."""
_MARKS: Final = (MARK_TOPIC, 0)


@dataclass(slots=True)
class _Watched:
    """The reading position in a queue of parked messages, or in the queue of marks."""

    queue: ParkedQueue
    end_offset: int = 0
    """The queue offset after the last message."""
    next_offset: int = 0
    """The queue offset of the next message to read."""
    under_way: dict[int, int] = field(default_factory=dict)
    """The marks that are not visible yet. Maps a message's queue offset to the commit log offset at which its mark ends."""


class ParkedMessages:
    """Reads parked messages and marks when they become visible, and counts the messages. Logs a line for each message."""

    REST_S: Final = 0.01
    """The pause between two calls of `read_arrived`, in seconds, so that other tasks can run."""

    def __init__(self, store: MessageStore, topic_table: SystemTopics) -> None:
        self._store = store
        self._topics = topic_table
        self._watched: dict[_Key, _Watched] = {}
        self._arrived: dict[_Key, None] = {}
        self.alarm = Alarm()
        """Wakes the task that calls `read_arrived` when there are new records."""

    def load(self) -> None:
        """Loads the parked messages from the store. Call it once, before the first message arrives."""
        for topic, queue_ids in self._store.queues().items():
            if topic.startswith(_OF_INTEREST):
                for queue_id in queue_ids:
                    self._watched[topic, queue_id] = self._load_queue((topic, queue_id))
        for data in records_from(self._store, *_MARKS, self._store.min_offset(*_MARKS)):
            self._note_mark(data)
        discarded, dead_letters = sum(self.discarded().values()), sum(self.dead_letters().values())
        if discarded or dead_letters:
            logger.warning("%s", waiting_line(discarded, dead_letters))

    def on_arrival(self, topic: bytes, queue_id: int, max_offset: int) -> None:
        """Records the new end of a queue."""
        if not topic.startswith(_OF_INTEREST):
            return
        key = topic, queue_id
        watched = self._watched.get(key)
        if watched is None or max_offset <= watched.end_offset:  # its topic was deleted and created again
            watched = self._watched[key] = _Watched(ParkedQueue())
        watched.end_offset = max_offset
        self._arrived[key] = None
        self.alarm.ring()

    def read_arrived(self) -> float | None:
        """Reads some of the new records. Returns 0 if there are more, or None otherwise."""
        room = AT_MOST_AT_ONCE
        while self._arrived and room > 0:
            # A mark is ignored if its message is unknown, so marks are read last.
            room -= self._read_queue(min(self._arrived, key=lambda key: key == _MARKS), room)
        return 0 if self._arrived else None

    def forget_expired(self) -> None:
        """Forgets messages that the store has deleted. Call this method periodically."""
        for key, watched in list(self._watched.items()):
            watched.queue.expire(self._store.min_offset(*key))
            if self._store.max_offset(*key) == 0:
                del self._watched[key]
                self._arrived.pop(key, None)

    # Queries

    def dead_letters(self) -> Mapping[str, int]:
        """Returns the number of dead letters that no operator has handled yet, keyed by consumer group."""
        return self._untreated(is_discarded=False)

    def discarded(self) -> Mapping[str, int]:
        """Returns the number of discarded messages that have not been resumed, keyed by producer group."""
        return self._untreated(is_discarded=True)

    def latest_mark(self, topic: bytes, queue_id: int, queue_offset: int) -> Mark | None:
        """Returns a message's latest mark, or None if it has no readable mark."""
        watched = self._watched.get((topic, queue_id))
        mark_offset = watched.queue.latest_mark(queue_offset) if watched is not None else None
        return self._mark_at(mark_offset)

    def marks(self, topic: bytes, queue_id: int, queue_offset: int) -> list[Mark]:
        """Returns a message's readable marks, latest first, at most MAX_MARKS_SHOWN."""
        found: list[Mark] = []
        mark = self.latest_mark(topic, queue_id, queue_offset)
        while mark is not None and len(found) < MAX_MARKS_SHOWN:
            found.append(mark)
            mark = self._mark_at(mark.previous)
        return found

    def is_being_treated(self, place: ParkedPlace) -> bool:
        """Returns True if a mark of the message is being stored."""
        watched = self._watched.get((place.topic, place.queue_id))
        return watched is not None and place.queue_offset in watched.under_way

    # Treatments

    def append_mark(
        self, place: ParkedPlace, treatment: Treatment, *, now_ms: int, by_host: bytes, reason: str = "", retries: int = 0
    ) -> Appended:
        """Appends a mark, which takes effect when it becomes visible. Raises IllegalMessage or StoreUnwritable."""
        self._topics.internal(MARK_TOPIC.decode(), 1)
        before = self.latest_mark(place.topic, place.queue_id, place.queue_offset)
        previous = before.queue_offset if before is not None else None
        properties = mark_properties(treatment, reason=reason, retries=retries, previous=previous)
        message = InnerMessage(MARK_TOPIC, 0, mark_body(place), properties, 0, 0, now_ms, by_host)
        appended = self._store.append(message, now_ms)
        watched = self._watched.get((place.topic, place.queue_id))
        if watched is not None:
            watched.under_way[place.queue_offset] = appended.end_position
        return appended

    def confirm(self, position: int) -> None:
        """Does nothing, because a mark takes effect when `read_arrived` reads the mark."""

    def take_back(self, position: int) -> None:
        """Forgets pending marks at or after the commit log offset `position`, because these marks are lost."""
        for watched in self._watched.values():
            watched.under_way = {queue_offset: end for queue_offset, end in watched.under_way.items() if end <= position}

    # Reading messages and marks

    def _load_queue(self, key: _Key) -> _Watched:
        topic, _ = key
        first, end = self._store.min_offset(*key), self._store.max_offset(*key)
        watched = _Watched(ParkedQueue(first), end_offset=end, next_offset=end)
        if topic == DISCARD_TOPIC:
            for record in map(decode_record, records_from(self._store, *key, first)):
                watched.queue.add(record.queue_offset, _group_of(record))
        elif topic != MARK_TOPIC and end > first:
            watched.queue.add(first, topic.removeprefix(DEAD_LETTERS).decode(errors="replace"), end - first)
        return watched

    def _read_queue(self, key: _Key, room: int) -> int:
        """Reads at most `room` new records of a queue. Returns the number of records read."""
        watched = self._watched[key]
        if watched.next_offset >= watched.end_offset:
            del self._arrived[key]
            return 0
        pulled = self._store.pull(*key, watched.next_offset, min(_PULL_MESSAGES, room), _PULL_BYTES)
        watched.next_offset = max(pulled.next_begin_offset, watched.next_offset + 1)
        for data in pulled.records:
            if key == _MARKS:
                self._note_mark(data)
            else:
                record = decode_record(data)
                watched.queue.add(record.queue_offset, _group_of(record))
                logger.warning("%s", parked_line(record))
        return max(len(pulled.records), 1)

    def _note_mark(self, data: bytes) -> None:
        try:
            mark = read_mark(data)
        except (CorruptRecord, NotAMark) as error:
            logger.error("ignored an unreadable operator mark: %s", error)
            return
        topic, queue_id, queue_offset, commit_log_offset = mark.place
        watched = self._watched.get((topic, queue_id))
        if watched is not None and self._store.commit_log_offset(topic, queue_id, queue_offset) == commit_log_offset:
            watched.queue.mark(queue_offset, mark.queue_offset)
            watched.under_way.pop(queue_offset, None)

    def _mark_at(self, mark_offset: int | None) -> Mark | None:
        commit_log_offset = self._store.commit_log_offset(*_MARKS, mark_offset) if mark_offset is not None else None
        if commit_log_offset is None:
            return None
        try:
            return read_mark(self._store.read(commit_log_offset))
        except (UnreadableRecord, NotAMark):
            return None

    def _untreated(self, *, is_discarded: bool) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for (topic, _), watched in self._watched.items():
            if topic != MARK_TOPIC and (topic == DISCARD_TOPIC) is is_discarded:
                for group, messages in watched.queue.untreated.items():
                    counts[group] += messages
        return counts


def _group_of(record: Record) -> str:
    group = group_of(record)
    return group if group is not None else record.get_property(props.PRODUCER_GROUP) or ""


def parked_line(record: Record) -> str:
    """Returns the log line for a newly parked message."""
    group, message_id = group_of(record), offset_message_id(record.store_host, record.commit_log_offset)
    return _discarded_line(record, message_id) if group is None else _dead_letter_line(record, group, message_id)


def waiting_line(discarded: int, dead_letters: int) -> str:
    """Returns the log line for the parked messages found at startup."""
    return (
        f"parked messages: {discarded} discarded, {dead_letters} dead letters. "
        "To list them: python -m rocketmq_broker.admin discarded; python -m rocketmq_broker.admin dead-letters list"
    )


def _dead_letter_line(record: Record, group: str, message_id: str) -> str:
    return (
        f"dead letter: message {_property(record, props.UNIQUE_KEY)} of topic {_property(record, props.RETRY_TOPIC)}, "
        f"keys {_property(record, props.KEYS)}, consumer group {printable(group)}, redeliveries {record.reconsume_times}. "
        f"To retry it after the group is fixed: python -m rocketmq_broker.admin dead-letters retry {message_id}"
    )


def _discarded_line(record: Record, message_id: str) -> str:
    return (
        f"discarded: transaction {_property(record, props.UNIQUE_KEY)}, its message for topic "
        f"{_property(record, props.REAL_TOPIC)}, keys {_property(record, props.KEYS)}, "
        f"producer group {_property(record, props.PRODUCER_GROUP)}, "
        f"checks {_property(record, props.TRANSACTION_CHECK_TIMES)}. "
        f"To check it again after the producer is fixed: python -m rocketmq_broker.admin resume {message_id}"
    )


def _property(record: Record, name: str) -> str:
    return printable(record.get_property(name) or "(none)")
