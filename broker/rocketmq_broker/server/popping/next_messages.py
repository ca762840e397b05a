"""Selects messages for a pop from the topic's queues and the retry topic (RocketMQ's PopMessageProcessor)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.message.record import queue_offset_of
from rocketmq_broker.protocol.codes import PopResponseCode, ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.popping.check_points import CheckPoints
from rocketmq_broker.server.popping.hidden_messages import Hidden
from rocketmq_broker.server.popping.pop_log import GroupQueue, PopEntry
from rocketmq_broker.server.popping.popped import Popped, PoppedQueue
from rocketmq_broker.server.popping.receipt_handle import refuse_invisible_time
from rocketmq_broker.server.popping.reviver import Reviver
from rocketmq_broker.server.popping.waiting_pops import PopRequest
from rocketmq_broker.server.pulling.reading_rules import ReadingRules
from rocketmq_broker.server.pulling.young_queues import YoungQueues
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.statistics.traffic import count
from rocketmq_broker.server.topics.names import refuse_offsets
from rocketmq_broker.store import GetMessageStatus, MessageStore, PulledMessages
from rocketmq_broker.world import Chance

MAX_MESSAGES: Final = 32
"""The maximum number of messages in one pop, as in RocketMQ."""
MAX_ATTEMPT_ID_LENGTH: Final = 255
"""The maximum length of an attempt id in characters. Apache's clients send a UUID."""
RETRIES_FIRST_PERCENT: Final = 20
"""The percentage of pops that read the retry topic first (popFromRetryProbability).

The other pops read it last, if they need more messages.
"""
_MOVED: Final = (
    GetMessageStatus.OFFSET_TOO_SMALL, GetMessageStatus.OFFSET_OVERFLOW_BADLY, GetMessageStatus.OFFSET_FOUND_NULL,
)  # fmt: skip
_MAX_FILTERING_NS: Final = 10_000_000
"""The time limit, in nanoseconds, for the filter expressions of one pop. Other clients must wait during this time."""
_MAX_QUEUES: Final = 1_000
"""The maximum number of queues that one pop reads, beginning with a random queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextMessages:
    """Selects a group's next messages, and hides them. Not thread-safe: use it on the event loop's thread."""

    store: MessageStore
    check_points: CheckPoints
    reviver: Reviver
    rules: ReadingRules
    young_queues: YoungQueues
    group_commit: GroupCommit
    statistics: BrokerStatistics
    max_bytes: int
    clock: BrokerClock
    random: Chance

    def take(self, request: PopRequest) -> Popped:
        """Takes messages for a pop, or checks whether messages are available. Raises RequestRefused, StoreUnwritable."""
        queues = self._queues(request)
        popped = Popped(self.clock(), request.invisible_ms, room=request.max_messages, bytes_left=self.max_bytes)
        for topic, queue_id, is_retry in self._order(request, queues):
            queue = GroupQueue(request.group, topic, queue_id)
            if popped.filtering_ns > _MAX_FILTERING_NS:
                popped.is_unfinished = True
                break
            if not popped.room or popped.bytes_left <= 0:
                break
            locked = self.check_points.ordered(queue) if request.is_ordered else {}
            refusal = None if locked else self.check_points.hidden.refusal(queue)
            if refusal is not None:
                if self._has_next(request, queue, locked):
                    popped.refusal = refusal
            elif request.is_notification:
                popped.has_messages = popped.has_messages or self._has_next(request, queue, locked)
            elif request.is_ordered:
                self._take_in_order(request, queue, locked, popped)
            else:
                self._take_from(request, queue, popped, is_retry=is_retry)
        return popped

    def _order(self, request: PopRequest, queues: int) -> Iterator[tuple[str, int, bool]]:
        """Yields the topic and id of each queue, and True for the retry topic, in the order in which the pop reads the queues."""
        chance = self.random.randrange(100)
        retry_topic = topics.pop_retry_topic(request.group, request.topic)
        has_retries = not request.is_ordered and self.store.max_offset(retry_topic.encode(), 0) > 0
        has_retries = has_retries and retry_topic != request.topic
        if has_retries and chance < RETRIES_FIRST_PERCENT:
            yield retry_topic, 0, True
        if request.queue_id >= 0:
            yield request.topic, request.queue_id, False
        else:
            first = self.random.randrange(queues)
            for number in range(min(queues, _MAX_QUEUES)):
                yield request.topic, (first + number) % queues, False
        if has_retries and chance >= RETRIES_FIRST_PERCENT:
            yield retry_topic, 0, True

    def _has_next(self, request: PopRequest, queue: GroupQueue, locked: Mapping[int, Hidden]) -> bool:
        """Returns True if a pop would find a message. If the group is new, all messages in the queue count, as in RocketMQ."""
        if locked and not _is_same_attempt(request, locked):
            return all(hidden.visible_ms <= self.clock() for hidden in locked.values())
        topic, known = queue.topic.encode(), self.check_points.position(queue)
        first = self.store.min_offset(topic, queue.queue_id) if known is None else known
        return bool(locked) or self.store.max_offset(topic, queue.queue_id) > first

    def _take_from(self, request: PopRequest, queue: GroupQueue, popped: Popped, *, is_retry: bool) -> None:
        start_offset, found = self._read(request, queue, popped, is_retry=is_retry)
        if found.next_begin_offset <= start_offset:
            return
        hidden = self.check_points.hidden.of(
            queue
        )  # skip these, because a group whose offset was reset backwards must not get them twice
        records = [record for record in found.records if queue_offset_of(record) not in hidden]
        self._hide(request, queue, records, popped, start_offset, found.next_begin_offset, is_retry=is_retry)

    def _take_in_order(self, request: PopRequest, queue: GroupQueue, locked: Mapping[int, Hidden], popped: Popped) -> None:
        is_same_attempt = _is_same_attempt(request, locked)
        if any(hidden.visible_ms > popped.pop_time_ms for hidden in locked.values()) and not is_same_attempt:
            return
        if locked:
            entry = next(iter(locked.values())).check_point.entry
            read = {offset: self.reviver.read(queue, offset) for offset in list(locked)[: popped.room]}
            if lost := [offset for offset, record in read.items() if record is None]:
                popped.end_position = self.check_points.settle(queue, lost)
            records = [record for record in read.values() if record is not None]
            attempt = entry.attempt + (not is_same_attempt)
            self._hide(request, queue, records, popped, entry.start_offset, entry.next_offset, attempt=attempt)
        else:
            start_offset, found = self._read(request, queue, popped)
            if found.next_begin_offset > start_offset:
                attempt = 1 if found.records else 0  # 0: a pop without messages does not lock the queue
                self._hide(request, queue, found.records, popped, start_offset, found.next_begin_offset, attempt=attempt)

    def _hide(
        self,
        request: PopRequest,
        queue: GroupQueue,
        records: list[bytes],
        popped: Popped,
        start_offset: int,
        next_offset: int,
        *,
        is_retry: bool = False,
        attempt: int = 0,
    ) -> None:
        offsets = [queue_offset_of(record) for record in records]
        entry = PopEntry(*queue, start_offset, next_offset, offsets, popped.pop_time_ms, popped.invisible_ms, attempt)
        popped.end_position = self.check_points.hide(entry, request.attempt_id)
        self.group_commit.appended()
        if records:
            popped.queues.append(PoppedQueue(queue.topic, queue.queue_id, is_retry, start_offset, records, attempt))
            popped.room -= len(records)
            popped.bytes_left -= sum(map(len, records))
            self._count(queue, records)

    def _count(self, queue: GroupQueue, records: list[bytes]) -> None:
        messages, size = len(records), sum(map(len, records))
        count(self.statistics.traffic.pulled, (queue.topic.encode(), queue.group), messages, size)
        self.statistics.flows.got(queue.topic.encode(), queue.group, messages, size)
        self.statistics.messages_got += messages

    def _position(self, request: PopRequest, queue: GroupQueue, *, is_retry: bool) -> int:
        """Returns the queue offset of the group's next message. Stores the initial offset of a new group."""
        known = self.check_points.position(queue)
        if known is not None:
            return known
        topic = queue.topic.encode()
        if is_retry or not request.begins_at_end or self.young_queues.has(topic, queue.queue_id):
            return self.store.min_offset(topic, queue.queue_id)
        end = self.store.max_offset(topic, queue.queue_id)
        self.check_points.hide(PopEntry(*queue, end, end, [], self.clock(), 0))
        self.group_commit.appended()
        return end

    def _read(
        self, request: PopRequest, queue: GroupQueue, popped: Popped, *, is_retry: bool = False
    ) -> tuple[int, PulledMessages]:
        """Reads the group's next messages. Returns the offset where reading began, and the result."""
        tags_codes, sql = request.message_filter
        start_offset = self._position(request, queue, is_retry=is_retry)
        while True:
            found = self.store.pull(
                queue.topic.encode(), queue.queue_id, start_offset, popped.room, popped.bytes_left, tags_codes, sql
            )
            popped.filtering_ns += found.cost_ns
            if found.status not in _MOVED or found.next_begin_offset == start_offset:
                popped.rest += max(found.max_offset - found.next_begin_offset, 0)
                popped.is_unfinished |= not found.records and start_offset < found.next_begin_offset < found.max_offset
                return start_offset, found
            start_offset = found.next_begin_offset
            self.check_points.set_position(queue, start_offset)

    def _queues(self, request: PopRequest) -> int:
        """Returns the number of the topic's queues. Raises RequestRefused if the group may not pop, or the request is invalid."""
        refuse_offsets(request.group, request.topic)
        queues = self.rules.refuse_forbidden(request.group, request.topic, max(request.queue_id, 0), verb="popping")
        if not 1 <= request.max_messages <= MAX_MESSAGES:
            remark = f"a pop must request 1 to {MAX_MESSAGES} messages, not {request.max_messages}"
            raise RequestRefused(PopResponseCode.INVALID_PARAMETER, remark)
        refuse_invisible_time(request.invisible_ms, min_ms=1)
        if len(request.attempt_id or "") > MAX_ATTEMPT_ID_LENGTH:
            remark = f"attempt id too long: {len(request.attempt_id or '')} characters, limit {MAX_ATTEMPT_ID_LENGTH}"
            raise RequestRefused(PopResponseCode.INVALID_PARAMETER, remark)
        retry_topic = topics.pop_retry_topic(request.group, request.topic)
        if self.rules.has_group(retry_topic.removeprefix(topics.RETRY_PREFIX)) and not request.topic.startswith(
            topics.RETRY_PREFIX
        ):
            remark = f"the retry topic {retry_topic} belongs to another group; use another group name"
            raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
        return queues


def _is_same_attempt(request: PopRequest, locked: Mapping[int, Hidden]) -> bool:
    """Returns True if the pop has the same attempt id as the pop that locked the queue last."""
    if request.attempt_id is None or not locked:
        return False
    last = max((hidden.check_point for hidden in locked.values()), key=lambda check_point: check_point.log_offset)
    return last.attempt_id == request.attempt_id
