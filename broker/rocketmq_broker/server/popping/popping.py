"""Implements pop consumption, which distributes messages instead of queues (RocketMQ's PopMessageProcessor and others).

A pop returns messages of any queue to one consumer, and hides them from the rest of the group for an invisible time. The consumer
acknowledges each message with its receipt handle. A message that is not acknowledged in time is delivered again ("revived").
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn

from rocketmq_broker.message import topics
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.complaints import Complaints
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.clients.message_filters import MessageFilters
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.popping.check_points import CheckPoints
from rocketmq_broker.server.popping.deliveries import Deliveries
from rocketmq_broker.server.popping.errors import TooManyPops
from rocketmq_broker.server.popping.hidden_messages import Hidden
from rocketmq_broker.server.popping.in_hand import InHand
from rocketmq_broker.server.popping.next_messages import MAX_MESSAGES, NextMessages
from rocketmq_broker.server.popping.pop_log import GroupQueue
from rocketmq_broker.server.popping.popped import Popped, PoppedMessage
from rocketmq_broker.server.popping.receipt_handle import ReceiptHandle
from rocketmq_broker.server.popping.reviver import Reviver
from rocketmq_broker.server.popping.waiting_pops import MAX_POLL_MS, PopRequest, WaitingPop, WaitingPops
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.store import StoreUnwritable

logger = logging.getLogger(__name__)

REST_S: Final = 0.005
_TRIED_AT_ONCE: Final = 256
_REVIVED_AT_ONCE: Final = 200
_UNWRITABLE_MS: Final = 1000
"""The pause before a retry, in milliseconds, if the store was not writable."""


class Popping:
    """Pops messages, acknowledges them and changes their invisible time. Not thread-safe: use it on the event loop's thread.

    The coroutines are for callers in this process, and return when their effect is durable. Request processors use `begin` and
    `deliveries` instead, which do not wait for durability.
    """

    def __init__(
        self,
        *,
        next_messages: NextMessages,
        deliveries: Deliveries,
        check_points: CheckPoints,
        in_hand: InHand,
        reviver: Reviver,
        message_filters: MessageFilters,
        group_commit: GroupCommit,
        statistics: BrokerStatistics,
        broker_name: str,
        clock: BrokerClock,
        max_sleep_s: float,
        alarm: Alarm,
    ) -> None:
        """Creates a Popping. `max_sleep_s` limits the result of `work`, as the event loop's clock may be slower than `clock`."""
        self.check_points = check_points
        self.deliveries = deliveries
        """Acknowledges messages without waiting for durability. Request processors use it, and wait for durability themselves."""
        self.in_hand = in_hand
        """Reports unacknowledged messages to operators."""
        self.waiting = WaitingPops()
        self.alarm = alarm
        """Wakes the task that calls `work`, if it must be called earlier than its last result says."""
        self._next = next_messages
        self._hidden = check_points.hidden
        self._reviver = reviver
        self._filters = message_filters
        self._group_commit = group_commit
        self._statistics = statistics
        self._broker_name = broker_name
        self._clock = clock
        self._max_sleep_s = max_sleep_s
        self._arrived: dict[bytes, None] = {}
        self._complaints = Complaints()

    # For callers in this process

    async def pop(
        self,
        group: str,
        topic: str,
        *,
        queue_id: int = -1,
        max_messages: int = MAX_MESSAGES,
        invisible_ms: int = 60_000,
        poll_ms: int = 0,
        expression: str | None = None,
        expression_type: str | None = None,
        fifo: bool = False,
        attempt_id: str | None = None,
        begin_at_end: bool = True,
        owner: object = None,
    ) -> list[PoppedMessage]:
        """Returns messages of one queue, or of all queues (-1). Returns an empty list if none arrive within `poll_ms`.

        A `fifo` pop skips queues in which messages of an earlier pop are hidden. A pop with the same `attempt_id` as the earlier
        pop returns those messages again. `begin_at_end` determines whether a new group begins at the end of the queues or at
        their first messages. The number of waiting pops of one `owner` is limited. Raises RequestRefused, TooManyPops,
        StoreUnwritable.
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

        waiting = self.begin(request, poll_ms, deliver, owner=owner if owner is not None else answer)
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
        """Acknowledges a message, so that its group does not get it again. Acknowledging it twice has no effect.

        Raises IllegalHandle, HandleExpired, RequestRefused, StoreUnwritable.
        """
        end_position = self.deliveries.settle(group, topic, ReceiptHandle.parse(handle))
        if end_position is not None:
            await self._group_commit.wait(end_position)

    async def change_invisible_time(self, group: str, topic: str, handle: str, invisible_ms: int) -> str:
        """Sets the end of the invisible time to `invisible_ms` from now. Returns the new handle, which replaces the old one.

        Raises the same exceptions as `ack`.
        """
        renewed, end_position = self.deliveries.renew(group, topic, ReceiptHandle.parse(handle), invisible_ms)
        await self._group_commit.wait(end_position)
        return str(renewed)

    async def to_dead_letters(self, group: str, topic: str, handle: str) -> None:
        """Stores a popped message in the group's dead-letter topic, and acknowledges it. Raises the same exceptions as `ack`."""
        end_position = self.deliveries.give_up(group, topic, ReceiptHandle.parse(handle))
        if end_position is not None:
            await self._group_commit.wait(end_position)

    # For request processors

    def begin(
        self, request: PopRequest, poll_ms: int, deliver: Callable[[Popped | None], None], *, owner: object = None
    ) -> WaitingPop | None:
        """Calls `deliver` with messages, or with None after `poll_ms` milliseconds.

        Returns the waiting pop, or None if `deliver` has already been called. The messages may be sent when their `end_position`
        is durable. Raises RequestRefused, TooManyPops, StoreUnwritable.
        """
        popped = self._take(request)
        if popped.refusal is not None and not popped.is_answer:
            self._refuse(request, popped.refusal)
        if popped.is_answer or poll_ms <= 0:
            deliver(popped if popped.is_answer else None)
            return None
        deadline_ms = self._clock.steady_ms() + min(poll_ms, MAX_POLL_MS)
        retry_topic = topics.pop_retry_topic(request.group, request.topic)
        names = (request.topic,) if request.is_ordered else dict.fromkeys((request.topic, retry_topic))
        waiting = WaitingPop(request, tuple(name.encode() for name in names), deadline_ms, deliver, owner)
        self.waiting.hold(waiting)
        self._read_further(popped, request)
        self.alarm.ring()
        return waiting

    # Background work

    def on_arrival(self, topic: bytes, queue_id: int, max_offset: int) -> None:
        """Records that messages arrived in a queue."""
        if self.waiting.count and self.waiting.has(topic):
            self._arrived[topic] = None
            self.alarm.ring()

    def on_visible(self, queue: GroupQueue) -> None:
        """Records that messages of a queue may have become visible to the queue's group again."""
        self.on_arrival(queue.topic.encode(), queue.queue_id, 0)

    def work(self) -> float | None:
        """Revives messages whose invisible time has ended, serves waiting pops, and ends pops whose poll time has passed.

        Returns the seconds until the next call, 0 if work remains, or None if no message is hidden and no pop is waiting.
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
        return min(max(min(left_ms) / 1000, 0), self._max_sleep_s) if left_ms else None

    def clock_stepped(self, step_ms: int) -> None:
        """Adjusts to a change of the system time, so that no invisible time becomes shorter or longer."""
        self._hidden.shift(step_ms)

    def _take(self, request: PopRequest) -> Popped:
        popped = self._next.take(request)
        if popped.queues:
            self.alarm.ring()
        return popped

    def _refuse(self, request: PopRequest, reason: str) -> NoReturn:
        refused = self._statistics.traffic.pops_refused
        key = request.topic.encode(), request.group
        refused[key] = refused.get(key, 0) + 1
        if self._complaints.is_due(request.group, request.topic, self._clock.steady_ms() / 1000):
            logger.warning("pops of group %s in topic %s are refused: %s", request.group, request.topic, reason)
        raise TooManyPops(reason)

    def _revive_due(self, now_ms: int) -> None:
        for _ in range(_REVIVED_AT_ONCE):
            check_point = self._hidden.take_due(now_ms)
            if check_point is None:
                return
            for offset, hidden in self._hidden.held_by(check_point):
                if hidden.visible_ms > now_ms:
                    self._hidden.watch(check_point, hidden.visible_ms)
                elif check_point.is_ordered:
                    self.on_visible(check_point.entry.queue)
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
        """Serves waiting pops. Skips a pop if an equal pop found no messages in this call."""
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
            popped = self._take(pop.request)
        except (RequestRefused, StoreUnwritable):
            return False  # the pop keeps waiting until its timeout
        if popped.is_answer:
            self.waiting.remove(pop)
            pop.deliver(popped)
        self._read_further(popped, pop.request)
        return popped.is_answer

    def _read_further(self, popped: Popped, request: PopRequest) -> None:
        """Makes `work` read the topic again if the pop found no messages because a filter skipped messages."""
        if popped.is_unfinished and not popped.queues:
            self._arrived[request.topic.encode()] = None
