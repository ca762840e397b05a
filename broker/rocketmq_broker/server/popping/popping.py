"""Pop consumption: the broker divides the messages, not the queues (RocketMQ's PopMessageProcessor and its companions).

A pop gives messages of any queue to one consumer, and hides them from the rest of its group for an invisible time. The consumer
acknowledges each with its receipt handle. A message that is not acknowledged in time comes again: it is revived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.message.record import queue_offset_of
from rocketmq_broker.protocol.codes import PopResponseCode, ResponseCode
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.clients.message_filters import MessageFilters
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.popping.check_points import CheckPoints
from rocketmq_broker.server.popping.errors import HandleExpired, IllegalHandle
from rocketmq_broker.server.popping.hidden_messages import Hidden
from rocketmq_broker.server.popping.in_hand import InHand
from rocketmq_broker.server.popping.pop_log import GroupQueue, PopEntry
from rocketmq_broker.server.popping.popped import Popped, PoppedMessage, PoppedQueue
from rocketmq_broker.server.popping.receipt_handle import ReceiptHandle
from rocketmq_broker.server.popping.reviver import Reviver
from rocketmq_broker.server.popping.waiting_pops import LONGEST_POLL_MS, PopRequest, WaitingPop, WaitingPops
from rocketmq_broker.server.pulling.reading_rules import ReadingRules
from rocketmq_broker.server.pulling.young_queues import YoungQueues
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.statistics.traffic import count
from rocketmq_broker.server.topics.names import refuse_offsets
from rocketmq_broker.store import GetMessageStatus, MessageStore, PulledMessages, StoreUnwritable
from rocketmq_broker.world import Chance

MOST_MESSAGES: Final = 32
"""Of one pop, as in RocketMQ."""
LONGEST_INVISIBLE_MS: Final = 12 * 3600 * 1000
"""Twelve hours, as RocketMQ's proxy allows at most: far less than messages are kept."""
MOST_HIDDEN: Final = 10_000
"""Messages of a queue hidden from one group (popInflightMessageThreshold)."""
MOST_HIDDEN_IN_ALL: Final = 500_000
"""They take some 100 bytes each, and the next start reads them."""
REST_S: Final = 0.005
RETRIES_FIRST_PERCENT: Final = 20
"""Of the pops look into the retry topic first; the others do so when they have room (popFromRetryProbability)."""
_MOVED: Final = (
    GetMessageStatus.OFFSET_TOO_SMALL, GetMessageStatus.OFFSET_OVERFLOW_BADLY, GetMessageStatus.OFFSET_FOUND_NULL,
)  # fmt: skip
_TRIED_AT_ONCE: Final = 256
_MOST_FILTERING_NS: Final = 10_000_000
"""Of one pop's expression: no other client waits longer for it."""
_MOST_QUEUES: Final = 1_000
"""Queues that one pop looks into; it begins with any of them."""
_REVIVED_AT_ONCE: Final = 200
_UNWRITABLE_MS: Final = 1000
"""The pause before the next try if the store could not be written."""


class Popping:
    """Pops, and what follows a pop. Use it on the event loop's thread.

    The coroutines are for callers in this process; they return when their effect is durable. Requests from the network use the
    methods without `async`, and wait for durability themselves.
    """

    def __init__(
        self,
        *,
        store: MessageStore,
        check_points: CheckPoints,
        in_hand: InHand,
        reviver: Reviver,
        rules: ReadingRules,
        young_queues: YoungQueues,
        message_filters: MessageFilters,
        group_commit: GroupCommit,
        statistics: BrokerStatistics,
        broker_name: str,
        max_bytes: int,
        clock: BrokerClock,
        random: Chance,
        longest_sleep_s: float,
    ) -> None:
        """`longest_sleep_s` bounds what `work` returns: the event loop's clock may go slower than `clock`."""
        self.check_points = check_points
        self.in_hand = in_hand
        """For operators."""
        self._hidden = check_points.hidden
        self._store = store
        self._reviver = reviver
        self._rules = rules
        self._young_queues = young_queues
        self._filters = message_filters
        self._group_commit = group_commit
        self._statistics = statistics
        self._broker_name = broker_name
        self._max_bytes = max_bytes
        self._clock = clock
        self._random = random
        self._longest_sleep_s = longest_sleep_s
        self.waiting = WaitingPops()
        self._arrived: dict[bytes, None] = {}
        self.alarm = Alarm()
        """Rings when there is something for `work` to do sooner than it said."""
        self._attempt_ids: dict[GroupQueue, str] = {}

    # For callers in this process.

    async def pop(
        self,
        group: str,
        topic: str,
        *,
        queue_id: int = -1,
        max_messages: int = MOST_MESSAGES,
        invisible_ms: int = 60_000,
        poll_ms: int = 0,
        expression: str | None = None,
        expression_type: str | None = None,
        fifo: bool = False,
        attempt_id: str | None = None,
        begin_at_end: bool = True,
    ) -> list[PoppedMessage]:
        """Returns messages of a queue, or of all queues (-1); none if none came within `poll_ms`.

        A `fifo` pop takes nothing from a queue in which a message of an earlier one is still hidden; the same `attempt_id` again
        gets those messages again. A new group begins at the ends of its queues, or with their first messages. Raises
        RequestRefused, TooManyPops, StoreUnwritable.
        """
        request = PopRequest(
            group=group,
            topic=topic,
            queue_id=queue_id,
            max_messages=max_messages,
            invisible_ms=invisible_ms,
            message_filter=self._filters.of_expression(expression_type, expression),
            is_ordered=fifo,
            attempt_id=attempt_id,
            begins_at_end=begin_at_end,
        )
        answer: asyncio.Future[tuple[Popped, asyncio.Future[None]] | None] = asyncio.get_running_loop().create_future()

        def deliver(popped: Popped | None) -> None:
            if popped is None:
                answer.set_result(None)
            else:
                answer.set_result((popped, self._group_commit.wait(popped.end_position)))

        waiting = self.begin(request, poll_ms, deliver, owner=answer)
        try:
            found = await answer
        finally:
            if waiting is not None:
                self.waiting.remove(waiting)
        if found is None:
            return []
        popped, durable = found
        await durable
        return popped.messages(topic, self._broker_name)

    async def ack(self, group: str, topic: str, handle: str) -> None:
        """Acknowledges a message: its group does not get it again. A second time it changes nothing.

        Raises IllegalHandle, HandleExpired, RequestRefused, StoreUnwritable.
        """
        end_position = self.settle(group, topic, ReceiptHandle.parse(handle))
        if end_position is not None:
            await self._group_commit.wait(end_position)

    async def change_invisible_time(self, group: str, topic: str, handle: str, invisible_ms: int) -> str:
        """Lets the invisible time end in `invisible_ms` from now. Returns the new handle; the old one counts no more.

        Raises like `ack`.
        """
        renewed, end_position = self.renew(group, topic, ReceiptHandle.parse(handle), invisible_ms)
        await self._group_commit.wait(end_position)
        return str(renewed)

    async def to_dead_letters(self, group: str, topic: str, handle: str) -> None:
        """Stores a popped message in the group's dead-letter topic, and acknowledges it. Raises like `ack`."""
        queue, offset, hidden = self._find(group, topic, ReceiptHandle.parse(handle))
        if hidden is not None:
            await self._group_commit.wait(self._reviver.give_up(queue, offset, hidden))

    # For requests from the network.

    def begin(
        self, request: PopRequest, poll_ms: int, deliver: Callable[[Popped | None], None], *, owner: object = None
    ) -> WaitingPop | None:
        """Calls `deliver` with messages, or with None after `poll_ms`. Returns the pop if it waits meanwhile.

        What `deliver` gets may be given away when its `end_position` is durable. Raises RequestRefused, TooManyPops,
        StoreUnwritable.
        """
        queues = self._queues(request)
        popped = self._take(request, queues)
        if popped.is_answer or poll_ms <= 0:
            deliver(popped if popped.is_answer else None)
            return None
        deadline_ms = self._clock.steady_ms() + min(poll_ms, LONGEST_POLL_MS)
        retry_topic = topics.pop_retry_topic(request.group, request.topic)
        names = (request.topic,) if request.is_ordered else dict.fromkeys((request.topic, retry_topic))
        waiting = WaitingPop(request, tuple(name.encode() for name in names), deadline_ms, deliver, owner)
        self.waiting.hold(waiting)
        self._look_further(popped, request)
        self.alarm.ring()
        return waiting

    def settle(self, group: str, topic: str, handle: ReceiptHandle) -> int | None:
        """Acknowledges a message. Returns the commit log offset after the entry; None if it was acknowledged already."""
        queue, offset, hidden = self._find(group, topic, handle)
        if hidden is None:
            return None
        end_position = self.check_points.settle(queue, [offset])
        self._group_commit.appended()
        return end_position

    def renew(self, group: str, topic: str, handle: ReceiptHandle, invisible_ms: int) -> tuple[ReceiptHandle, int]:
        """Changes the end of an invisible time. Returns the new handle, and the commit log offset after the entry."""
        self._refuse_invisible_time(invisible_ms, least_ms=0)
        queue, offset, hidden = self._find(group, topic, handle)
        if hidden is None:
            raise HandleExpired(f"the message {handle.offset} of queue {handle.queue_id} was acknowledged")
        now_ms, entry = self._clock(), hidden.check_point.entry
        if hidden.check_point.is_ordered:
            renewed = handle.renewed(entry.pop_time_ms, now_ms + invisible_ms - entry.pop_time_ms)
            start_offset = entry.start_offset
        else:
            # Within one millisecond, too, the new handle differs from the old one.
            renewed = handle.renewed(max(now_ms, entry.pop_time_ms + 1), invisible_ms)
            start_offset = entry.next_offset  # the group's offset stays
        end_position = self.check_points.hide(
            PopEntry(*queue, start_offset, entry.next_offset, [offset], renewed.pop_time_ms, renewed.invisible_ms, entry.attempt)
        )
        self._group_commit.appended()
        self.alarm.ring()
        return renewed, end_position

    # Work between requests.

    def on_arrival(self, topic: bytes, queue_id: int, max_offset: int) -> None:
        """Notes that messages arrived in a queue."""
        if self.waiting.count and self.waiting.has(topic):
            self._arrived[topic] = None
            self.alarm.ring()

    def on_shown(self, queue: GroupQueue) -> None:
        """Notes that a queue may have messages for its group again."""
        self.on_arrival(queue.topic.encode(), queue.queue_id, 0)

    def work(self) -> float | None:
        """Revives what is due, serves waiting pops, and ends those whose time is up.

        Returns in how many seconds to call again, 0 if some work is left; None if nothing is hidden and no pop waits.
        """
        now_ms, steady_ms = self._clock(), self._clock.steady_ms()
        try:
            self._revive_due(now_ms)
        except StoreUnwritable:
            return _UNWRITABLE_MS / 1000
        self._serve_arrived()
        for pop in self.waiting.take_due(steady_ms):
            pop.deliver(None)
        if self._arrived:
            return 0
        waits = [self._hidden.next_due_ms(), self.waiting.next_due_ms()]
        left_ms = [due - now for due, now in zip(waits, (now_ms, steady_ms), strict=True) if due is not None]
        return min(max(min(left_ms) / 1000, 0), self._longest_sleep_s) if left_ms else None

    def clock_stepped(self, step_ms: int) -> None:
        """Adjusts for a leap of the clock: no invisible time becomes shorter or longer for it."""
        self._hidden.shift(step_ms)

    def _queues(self, request: PopRequest) -> int:
        """Returns the number of the topic's queues. Raises RequestRefused unless the group may pop there."""
        refuse_offsets(request.group, request.topic)
        queues = self._rules.refuse_forbidden(request.group, request.topic, max(request.queue_id, 0), verb="popping")
        if not 1 <= request.max_messages <= MOST_MESSAGES:
            remark = f"{request.max_messages} messages in one pop; 1 to {MOST_MESSAGES} are possible"
            raise RequestRefused(PopResponseCode.INVALID_PARAMETER, remark)
        self._refuse_invisible_time(request.invisible_ms, least_ms=1)
        retry_topic = topics.pop_retry_topic(request.group, request.topic)
        if len(retry_topic) > topics.MAX_TOPIC_LENGTH:
            remark = (
                f"the retry topic {retry_topic} would have {len(retry_topic)} letters; {topics.MAX_TOPIC_LENGTH} are possible"
            )
            raise RequestRefused(PopResponseCode.INVALID_PARAMETER, remark)
        if self._rules.has_group(retry_topic.removeprefix(topics.RETRY_PREFIX)) and not request.topic.startswith(
            topics.RETRY_PREFIX
        ):
            remark = f"the retry topic would be {retry_topic}, and that is another group's: name the group otherwise"
            raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
        return queues

    def _refuse_invisible_time(self, invisible_ms: int, *, least_ms: int) -> None:
        if not least_ms <= invisible_ms <= LONGEST_INVISIBLE_MS:
            remark = f"an invisible time of {invisible_ms} ms; {least_ms} to {LONGEST_INVISIBLE_MS} are possible"
            raise RequestRefused(PopResponseCode.INVALID_PARAMETER, remark)

    def _find(self, group: str, topic: str, handle: ReceiptHandle) -> tuple[GroupQueue, int, Hidden | None]:
        """Returns where the handle's message is, and what hides it; None if it was acknowledged within its invisible time."""
        refuse_offsets(group, topic)
        if handle.broker_name != self._broker_name:
            raise IllegalHandle(f"the handle is for the broker {handle.broker_name}; this is {self._broker_name}")
        queue = GroupQueue(group, handle.stored_in(group, topic).decode(), handle.queue_id)
        hidden = self._hidden.of(queue).get(handle.offset)
        if hidden is None and self._clock() >= handle.expires_ms:
            raise HandleExpired(f"the invisible time of message {handle.offset} of queue {handle.queue_id} is over")
        if hidden is not None and hidden.check_point.entry.pop_time_ms != handle.pop_time_ms:
            raise HandleExpired(f"message {handle.offset} of queue {handle.queue_id} has another handle by now")
        return queue, handle.offset, hidden

    def _take(self, request: PopRequest, queues: int) -> Popped:
        popped = Popped(self._clock(), request.invisible_ms, room=request.max_messages, bytes_left=self._max_bytes)
        for topic, queue_id, is_retry in self._order(request, queues):
            queue = GroupQueue(request.group, topic, queue_id)
            if popped.filtering_ns > _MOST_FILTERING_NS:
                popped.is_unfinished = True
                break
            if popped.room and popped.bytes_left > 0 and not self._is_full(queue):
                if request.only_asks:
                    popped.is_told = popped.is_told or self._has_next(request, queue)
                elif request.is_ordered:
                    self._take_in_order(request, queue, popped)
                else:
                    self._take_from(request, queue, popped, is_retry=is_retry)
        if popped.queues:
            self.alarm.ring()
        return popped

    def _order(self, request: PopRequest, queues: int) -> Iterator[tuple[str, int, bool]]:
        """Yields the queues in the order in which the pop looks into them: topic, queue id, and whether it is the retry topic."""
        chance = self._random.randrange(100)
        retry_topic = topics.pop_retry_topic(request.group, request.topic)
        has_retries = not request.is_ordered and self._store.max_offset(retry_topic.encode(), 0) > 0
        has_retries = has_retries and retry_topic != request.topic
        if has_retries and chance < RETRIES_FIRST_PERCENT:
            yield retry_topic, 0, True
        if request.queue_id >= 0:
            yield request.topic, request.queue_id, False
        else:
            first = self._random.randrange(queues)
            for number in range(min(queues, _MOST_QUEUES)):
                yield request.topic, (first + number) % queues, False
        if has_retries and chance >= RETRIES_FIRST_PERCENT:
            yield retry_topic, 0, True

    def _is_full(self, queue: GroupQueue) -> bool:
        return len(self._hidden.of(queue)) >= MOST_HIDDEN or self._hidden.count >= MOST_HIDDEN_IN_ALL

    def _has_next(self, request: PopRequest, queue: GroupQueue) -> bool:
        """Returns whether a pop would find a message in the queue; a new group, with any that is there, as in RocketMQ."""
        locked = self.check_points.ordered(queue) if request.is_ordered else {}
        if locked and not self._is_same_attempt(request, queue):
            return all(hidden.visible_ms <= self._clock() for hidden in locked.values())
        topic, known = queue.topic.encode(), self.check_points.position(queue)
        first = self._store.min_offset(topic, queue.queue_id) if known is None else known
        return bool(locked) or self._store.max_offset(topic, queue.queue_id) > first

    def _is_same_attempt(self, request: PopRequest, queue: GroupQueue) -> bool:
        return request.attempt_id is not None and self._attempt_ids.get(queue) == request.attempt_id

    def _take_from(self, request: PopRequest, queue: GroupQueue, popped: Popped, *, is_retry: bool) -> None:
        start_offset, found = self._look(request, queue, popped, is_retry=is_retry)
        if found.next_begin_offset <= start_offset:
            return
        hidden = self._hidden.of(queue)  # a group whose offset was set back does not get them a second time meanwhile
        records = [record for record in found.records if queue_offset_of(record) not in hidden]
        self._hide(queue, records, popped, start_offset, found.next_begin_offset, is_retry=is_retry)

    def _take_in_order(self, request: PopRequest, queue: GroupQueue, popped: Popped) -> None:
        locked = self.check_points.ordered(queue)
        is_same_attempt = self._is_same_attempt(request, queue)
        if any(hidden.visible_ms > popped.pop_time_ms for hidden in locked.values()) and not is_same_attempt:
            return
        if locked:
            entry = next(iter(locked.values())).check_point.entry
            read = {offset: self._reviver.read(queue, offset) for offset in list(locked)[: popped.room]}
            if lost := [offset for offset, record in read.items() if record is None]:
                popped.end_position = self.check_points.settle(queue, lost)
            records = [record for record in read.values() if record is not None]
            attempt = entry.attempt + (not is_same_attempt)
            self._hide(queue, records, popped, entry.start_offset, entry.next_offset, attempt=attempt)
        else:
            start_offset, found = self._look(request, queue, popped)
            if found.next_begin_offset > start_offset:
                attempt = 1 if found.records else 0  # without a message nothing locks the queue
                self._hide(queue, found.records, popped, start_offset, found.next_begin_offset, attempt=attempt)
        if request.attempt_id is not None:
            self._attempt_ids[queue] = request.attempt_id

    def _hide(
        self,
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
        popped.end_position = self.check_points.hide(entry)
        self._group_commit.appended()
        if records:
            popped.queues.append(PoppedQueue(queue.topic, queue.queue_id, is_retry, start_offset, records, attempt))
            popped.room -= len(records)
            popped.bytes_left -= sum(map(len, records))
            self._count(queue, records)

    def _count(self, queue: GroupQueue, records: list[bytes]) -> None:
        messages, size = len(records), sum(map(len, records))
        count(self._statistics.traffic.pulled, (queue.topic.encode(), queue.group), messages, size)
        self._statistics.flows.got(queue.topic.encode(), queue.group, messages, size)
        self._statistics.messages_got += messages

    def _position(self, request: PopRequest, queue: GroupQueue, *, is_retry: bool) -> int:
        """Returns the queue offset of the group's next message. A new group's is kept for good from here on."""
        known = self.check_points.position(queue)
        if known is not None:
            return known
        topic = queue.topic.encode()
        if is_retry or not request.begins_at_end or self._young_queues.has(topic, queue.queue_id):
            return self._store.min_offset(topic, queue.queue_id)
        end = self._store.max_offset(topic, queue.queue_id)
        self.check_points.hide(PopEntry(*queue, end, end, [], self._clock(), 0))
        self._group_commit.appended()
        return end

    def _look(
        self, request: PopRequest, queue: GroupQueue, popped: Popped, *, is_retry: bool = False
    ) -> tuple[int, PulledMessages]:
        """Reads the group's next messages. Returns the offset where reading began, and what was found."""
        tags_codes, sql = request.message_filter
        start_offset = self._position(request, queue, is_retry=is_retry)
        while True:
            found = self._store.pull(
                queue.topic.encode(), queue.queue_id, start_offset, popped.room, popped.bytes_left, tags_codes, sql
            )
            popped.filtering_ns += found.cost_ns
            if found.status not in _MOVED or found.next_begin_offset == start_offset:
                popped.rest += max(found.max_offset - found.next_begin_offset, 0)
                popped.is_unfinished |= not found.records and start_offset < found.next_begin_offset < found.max_offset
                return start_offset, found
            start_offset = found.next_begin_offset
            self.check_points.set_position(queue, start_offset)

    def _revive_due(self, now_ms: int) -> None:
        for _ in range(_REVIVED_AT_ONCE):
            check_point = self._hidden.take_due(now_ms)
            if check_point is None:
                return
            for offset, hidden in self._hidden.held_by(check_point):
                if hidden.visible_ms > now_ms:
                    self._hidden.watch(check_point, hidden.visible_ms)
                elif check_point.is_ordered:
                    self.on_shown(check_point.entry.queue)
                else:
                    self._revive(offset, hidden, now_ms)
        self.alarm.ring()

    def _revive(self, offset: int, hidden: Hidden, now_ms: int) -> None:
        try:
            self._reviver.revive(hidden.check_point.entry.queue, offset, hidden)
        except StoreUnwritable:
            self._hidden.watch(hidden.check_point, now_ms + _UNWRITABLE_MS)
            raise

    def _serve_arrived(self) -> None:
        """Gives messages to waiting pops. Of those that ask for the same, only the first one without messages is tried."""
        room = _TRIED_AT_ONCE
        while self._arrived and room > 0:
            topic = next(iter(self._arrived))
            del self._arrived[topic]
            missed = set()
            for pop in self.waiting.of(topic):
                request = pop.request
                key = request.group, request.queue_id, request.message_filter, request.is_ordered
                if key in missed:
                    continue
                if room <= 0:
                    self._arrived[topic] = None
                    break
                room -= 1
                if not self._serve(pop):
                    missed.add(key)

    def _serve(self, pop: WaitingPop) -> bool:
        try:
            popped = self._take(pop.request, self._queues(pop.request))
        except (RequestRefused, StoreUnwritable):
            return False  # it waits on: its own time-out tells it that nothing came
        if popped.is_answer:
            self.waiting.remove(pop)
            pop.deliver(popped)
        self._look_further(popped, pop.request)
        return popped.is_answer

    def _look_further(self, popped: Popped, request: PopRequest) -> None:
        """Lets `work` go on behind messages that a filter passed over."""
        if popped.is_unfinished and not popped.queues:
            self._arrived[request.topic.encode()] = None
