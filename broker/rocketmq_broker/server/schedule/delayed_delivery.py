"""Moves delayed messages from the schedule topic to their topics when they are due (RocketMQ's ScheduleMessageService)."""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from rocketmq_broker.message import properties
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.record import Record, decode_record, moved_message
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.schedule.broker_clock import TOLERANCE_MS
from rocketmq_broker.server.schedule.clock_of_queue import ClockOfQueue
from rocketmq_broker.server.schedule.delay_levels import SCHEDULE_TOPIC, Place, final_place
from rocketmq_broker.store import CorruptRecord, DelayOffsets, MessageStore, StoreUnwritable

MAX_AT_ONCE: Final = 500
"""The maximum number of messages that are delivered in one turn of the event loop."""
REST_S: Final = 0.005
UNWRITABLE_MS: Final = 100
"""The pause before a retry, in milliseconds, if the store was not writable."""

_READ_MESSAGES: Final = 32
_READ_BYTES: Final = 1 << 20

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Level:
    """The next offset of a delay level's queue, and the time when the next message is due.

    The time is None if the queue is empty.
    """

    queue_id: int
    delay_ms: int
    offset: int
    next_due_ms: int | None = 0
    clock: ClockOfQueue = field(default_factory=ClockOfQueue)


class Queues(Protocol):
    """Finds the queues of topics (TopicTable)."""

    def existing_queue(self, topic: bytes, queue_id: int) -> int:
        """Returns the queue for a message that was accepted for `queue_id` earlier. The topic may have fewer queues now."""


class _Delivered(NamedTuple):
    """A delivered message that may not be durable yet."""

    end_position: int
    level: _Level
    offset: int


class DelayedDelivery:
    """Delivers each delayed message at least once. A level's offset advances when the delivered message is durable.

    After a crash, the messages that were delivered since the offsets were last saved are found in the index, and are not
    delivered again.
    """

    def __init__(
        self,
        *,
        store: MessageStore,
        group_commit: GroupCommit,
        offsets: DelayOffsets,
        queues: Queues,
        levels_ms: tuple[int, ...],
        clock: Callable[[], int],
        max_sleep_s: float,
    ) -> None:
        """Creates a DelayedDelivery.

        `max_sleep_s` limits the result of `deliver_due`, because the event loop's clock may be slower than `clock`.
        """
        self._store = store
        self._group_commit = group_commit
        self._offsets = offsets
        self._queues = queues
        self._clock = clock
        self._max_sleep_s = max_sleep_s
        self._levels = [_Level(queue_id, delay_ms, offsets.get(queue_id + 1) or 0) for queue_id, delay_ms in enumerate(levels_ms)]
        self.alarm = Alarm()
        """Wakes the task that calls `deliver_due`, if a message may be due earlier than its last result says."""
        self._delivered: deque[_Delivered] = deque()
        self._delivered_before = DeliveredBefore(store)

    def on_arrival(self, topic: bytes, queue_id: int, max_offset: int) -> None:
        """Records that messages arrived in a queue."""
        if topic == SCHEDULE_TOPIC and queue_id < len(self._levels) and self._levels[queue_id].next_due_ms is None:
            self._levels[queue_id].next_due_ms = 0
            self.alarm.ring()

    def deliver_due(self) -> float | None:
        """Delivers due messages. Returns the seconds until the next message is due, or None if no message waits."""
        now_ms = self._clock()
        room = MAX_AT_ONCE
        for level in self._levels:
            if level.next_due_ms is not None and level.next_due_ms <= now_ms and room > 0:
                try:
                    room -= self._deliver_level(level, now_ms, room)
                except StoreUnwritable:
                    return UNWRITABLE_MS / 1000
        due_ms = min((level.next_due_ms for level in self._levels if level.next_due_ms is not None), default=None)
        return None if due_ms is None else min(max((due_ms - now_ms) / 1000, 0), self._max_sleep_s)

    def confirm(self, position: int) -> None:
        """Advances the offsets past delivered messages that are durable: those before the commit log offset `position`."""
        while self._delivered and self._delivered[0].end_position <= position:
            delivered = self._delivered.popleft()
            self._offsets.put(delivered.level.queue_id + 1, delivered.offset + 1)

    def take_back(self, position: int) -> None:
        """Reschedules messages whose delivered copies, at or after `position` in the commit log, are lost."""
        while self._delivered and self._delivered[-1].end_position > position:
            level, offset = self._delivered.pop()[1:]
            level.offset = min(level.offset, offset)
            level.next_due_ms = self._clock() + UNWRITABLE_MS
            self.alarm.ring()
        for level in self._levels:
            level.clock.ends_at(self._store.next_offset(SCHEDULE_TOPIC, level.queue_id))

    def clock_stepped(self, step_ms: int) -> None:
        """Adjusts to a step of the system time, so that delayed messages are delivered neither earlier nor later."""
        for level in self._levels:
            level.clock.stepped(step_ms, self._store.next_offset(SCHEDULE_TOPIC, level.queue_id))
            if level.next_due_ms is not None:
                level.next_due_ms = 0
        self.alarm.ring()

    def persist(self) -> None:
        """Saves the offsets to disk. Raises OSError."""
        self._offsets.persist()

    def offsets(self) -> dict[int, tuple[int, int]]:
        """Returns the delivered offset and the max offset of each level's queue, keyed by delay level."""
        return {
            level.queue_id + 1: (level.offset, self._store.max_offset(SCHEDULE_TOPIC, level.queue_id)) for level in self._levels
        }

    def _deliver_level(self, level: _Level, now_ms: int, limit: int) -> int:
        """Delivers up to `limit` messages of a level, and sets its next due time. Returns the number of messages delivered."""
        count = 0
        while count < limit:
            found = self._store.pull(SCHEDULE_TOPIC, level.queue_id, level.offset, _READ_MESSAGES, _READ_BYTES)
            if not found.records:
                if found.next_begin_offset == level.offset:
                    level.next_due_ms = None
                    break
                level.offset = found.next_begin_offset
                continue
            for data in found.records:
                record = decode_record(data)
                due_ms = _due_ms(record, level, now_ms)
                if due_ms > now_ms:
                    level.next_due_ms = due_ms
                    return count
                self._deliver(record, level, now_ms)
                count += 1
        return count

    def _deliver(self, record: Record, level: _Level, now_ms: int) -> None:
        level.offset = record.queue_offset + 1
        try:
            place = final_place(record.properties)
            if self._delivered_before.has(record, place, record.store_timestamp + level.delay_ms):
                self._note_delivered(self._delivered[-1].end_position if self._delivered else 0, level, record.queue_offset)
                return
            queue_id = self._queues.existing_queue(place.topic, place.queue_id)
            message = moved_message(record, place.topic, queue_id, place.properties, record.reconsume_times)
            appended = self._store.append(message, now_ms, was_accepted=True, may_use_reserve=True)
        except (IllegalMessage, CorruptRecord) as error:
            logger.error("skipped the delayed message at commit log offset %d: %s", record.commit_log_offset, error)
            return
        except StoreUnwritable:
            level.offset = record.queue_offset
            raise
        self._group_commit.appended()
        self._note_delivered(appended.end_position, level, record.queue_offset)

    def _note_delivered(self, end_position: int, level: _Level, offset: int) -> None:
        self._delivered.append(_Delivered(end_position, level, offset))


def _due_ms(record: Record, level: _Level, now_ms: int) -> int:
    """Returns the time when a message is due, in milliseconds since the epoch.

    Returns `now_ms` if the message's store timestamp is in the future (correctDeliverTimestamp).
    """
    stored_ms = record.store_timestamp + level.clock.stepped_since(record.queue_offset)
    return stored_ms + level.delay_ms if stored_ms <= now_ms + TOLERANCE_MS else now_ms


class DeliveredBefore:
    """Finds messages that were delivered before a crash, after the offsets were last saved. RocketMQ delivers them again.

    Searches the index only for messages that were due before the crash.
    """

    def __init__(self, store: MessageStore) -> None:
        """Determines from the store's recovery whether and when the broker crashed."""
        self._store = store
        self._crashed_ms = 0 if store.recovery.was_stopped_cleanly else store.recovery.last_store_timestamp

    def has(self, waiting: Record, place: Place, due_ms: int) -> bool:
        """Returns True if the message was already delivered. Returns False if there is no index or no unique id."""
        if due_ms > self._crashed_ms:
            return False
        unique_id = waiting.get_property(properties.UNIQUE_KEY)
        if unique_id is None:
            return False
        found = self._store.query(place.topic, unique_id, begin_ms=waiting.store_timestamp)
        return any(_is_delivery(decode_record(data), waiting, place) for data in found.records)


def _is_delivery(record: Record, waiting: Record, place: Place) -> bool:
    # A retried message keeps its unique id, and enters its retry topic once for each attempt.
    return (
        record.commit_log_offset > waiting.commit_log_offset
        and record.queue_id == place.queue_id
        and record.reconsume_times == waiting.reconsume_times
        and record.born_timestamp == waiting.born_timestamp
        and record.body_crc == waiting.body_crc
    )
