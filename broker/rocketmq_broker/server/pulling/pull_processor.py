"""Delivers messages to consumers, immediately or when they arrive (RocketMQ's PullMessageProcessor)."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.bodies.heartbeat import MessageModel, SubscriptionData
from rocketmq_broker.protocol.bodies.route import MASTER_ID
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, ReplyTo, encode_response, encode_response_in_parts
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.message_filters import MessageFilter, MessageFilters
from rocketmq_broker.server.pulling.held_pulls import DEADLINE_STEP_MS, HeldPull, HeldPulls
from rocketmq_broker.server.pulling.reading_rules import ReadingRules
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.statistics.traffic import count
from rocketmq_broker.server.topics.names import refuse_offsets
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import GetMessageStatus, MessageStore, PulledMessages

MAX_SUSPENSION_MS: Final = 120_000
MAX_FILTERING_NS: Final = 10_000_000
"""The approximate time limit, in nanoseconds, for filter expressions of held pulls in one turn of the event loop."""
TRIED_AT_ONCE: Final = 256
"""The maximum number of held pulls that are repeated in one turn of the event loop, which takes about 10 ms."""

_CODES: Final = {
    GetMessageStatus.FOUND: ResponseCode.SUCCESS,
    GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}


class PullProcessor:
    """Handles pulls.

    If a pull finds no messages and the client allows it, the pull is held until a message arrives or its timeout expires.
    """

    def __init__(
        self,
        *,
        store: MessageStore,
        topic_table: TopicTable,
        subscription_groups: SubscriptionGroupTable,
        consumer_groups: ConsumerGroups,
        offset_commits: OffsetCommits,
        held_pulls: HeldPulls,
        message_filters: MessageFilters,
        statistics: BrokerStatistics,
        max_messages: int,
        max_bytes: int,
        short_polling_ms: int | None,
        broker_permission: int,
        clock: Callable[[], int],
    ) -> None:
        """Creates the processor. If long polling is disabled, `short_polling_ms` replaces the hold time that clients request."""
        self._store = store
        self._rules = ReadingRules(topic_table, subscription_groups, broker_permission)
        self._groups = subscription_groups
        self._consumers = consumer_groups
        self._commits = offset_commits
        self._held = held_pulls
        self._filters = message_filters
        self._statistics = statistics
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._short_polling_ms = short_polling_ms
        self._clock = clock
        self.alarm = Alarm()
        """Wakes the task that calls `answer_overdue`, if a deadline is earlier than the last result of `answer_overdue`."""
        self._next_due_ms: float = math.inf
        self._woken: deque[tuple[HeldPull, bool]] = deque()
        """Pulls to repeat in later turns of the event loop, each with a flag that allows it to be held again."""

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of pulls, and of lite pulls from RocketMQ 5, which are handled in the same way."""
        return {RequestCode.PULL_MESSAGE: self.pull, RequestCode.LITE_PULL_MESSAGE: self.pull}

    def pull(self, connection: Connection, command: RemotingCommand) -> bytes | None:
        """Responds with messages of one queue, starting at an offset."""
        header = command.decode_header(PullMessageRequestHeader)
        self._rules.refuse_forbidden(header.consumer_group, header.topic, header.queue_id)
        if header.sys_flag & pull_sysflag.COMMIT_OFFSET:
            refuse_offsets(header.consumer_group, header.topic)
        pull = HeldPull(
            connection,
            ReplyTo(command.opaque, command.serialize_type),
            header.consumer_group,
            header.topic.encode(),
            header.queue_id,
            header.queue_offset,
            max(1, min(header.max_msg_nums, self._max_messages)),
            self._message_filter(header),
            self._clock() + self._suspension_ms(header),
        )
        if header.sys_flag & pull_sysflag.COMMIT_OFFSET:
            # The offset in a pull may be outdated when it is handled: the consumer may have committed a later one on another
            # connection (the VIP channel of old clients). To go back, consumers send UPDATE_CONSUMER_OFFSET.
            self._commits.advance(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        found = self._read(pull)
        code = _code(found, pull.offset)
        is_at_end = code is ResponseCode.PULL_NOT_FOUND and found.next_begin_offset <= pull.offset
        if is_at_end and header.sys_flag & pull_sysflag.SUSPEND and self._held.hold(pull):
            if pull.deadline_ms <= self._next_due_ms - DEADLINE_STEP_MS:
                self._next_due_ms = float(pull.deadline_ms)
                self.alarm.ring()
            return None
        return self._answer(pull, code, found)

    def on_arrival(self, topic: bytes, queue_id: int, max_offset: int) -> None:
        """Repeats the held pulls that wait for messages of the queue."""
        first_offset = self._held.checked_until(topic, queue_id)
        tags_codes = None
        if first_offset is not None:
            tags_codes = self._store.tags_codes(topic, queue_id, first_offset, max_offset)
        arrived = self._held.take_arrived(topic, queue_id, max_offset, tags_codes)
        self._repeat_all(arrived[:TRIED_AT_ONCE], may_hold=True)
        if len(arrived) > TRIED_AT_ONCE:
            self._woken += ((pull, True) for pull in arrived[TRIED_AT_ONCE:])
            self.alarm.ring()

    def answer_overdue(self) -> float | None:
        """Responds to pulls whose deadline has passed, and repeats pulls that remain from earlier calls.

        Returns the seconds until the next call, 0 if pulls remain, or None if no pull is held.
        """
        now_ms = self._clock()
        self._woken += ((pull, False) for pull in self._held.take_due(now_ms))
        if self._woken:
            now = [self._woken.popleft() for _ in range(min(TRIED_AT_ONCE, len(self._woken)))]
            for may_hold in (True, False):
                self._repeat_all([pull for pull, may in now if may is may_hold], may_hold=may_hold)
        if self._woken:
            return 0
        due_ms = self._held.next_due_ms()
        self._next_due_ms = float(due_ms) if due_ms is not None else math.inf
        return (due_ms - now_ms) / 1000 if due_ms is not None else None

    def _repeat_all(self, pulls: Iterable[HeldPull], *, may_hold: bool) -> None:
        """Repeats pulls.

        After MAX_FILTERING_NS of filtering, responds with PULL_RETRY_IMMEDIATELY to the remaining pulls with SQL92 expressions.
        """
        cost_ns = 0
        for pull in pulls:
            if cost_ns > MAX_FILTERING_NS and pull.message_filter.sql is not None:
                pull.connection.send(self._answer(pull, ResponseCode.PULL_RETRY_IMMEDIATELY, self._unread(pull)))
            else:
                cost_ns += self._repeat(pull, may_hold=may_hold)

    def _repeat(self, pull: HeldPull, *, may_hold: bool) -> int:
        """Repeats a pull, and responds to it or holds it again. Returns the nanoseconds spent on the filter expression."""
        cost_ns = 0
        try:
            found = self._read(pull)
            cost_ns = found.cost_ns
            code = _code(found, pull.offset)
            is_at_end = found.next_begin_offset >= found.max_offset
            if may_hold and code is ResponseCode.PULL_RETRY_IMMEDIATELY and is_at_end:
                # No new message matched. Hold the pull again after these messages, to save the client a round trip.
                pull.offset = found.next_begin_offset
                if self._held.hold(pull):
                    return cost_ns
            frame = self._answer(pull, code, found)
        except OSError as error:
            frame = encode_response(pull.reply_to, ResponseCode.SYSTEM_ERROR, remark=str(error))
        pull.connection.send(frame)
        return cost_ns

    def _unread(self, pull: HeldPull) -> PulledMessages:
        bounds = self._store.min_offset(pull.topic, pull.queue_id), self._store.max_offset(pull.topic, pull.queue_id)
        return PulledMessages(GetMessageStatus.NO_MATCHED_MESSAGE, pull.offset, *bounds)

    def _read(self, pull: HeldPull) -> PulledMessages:
        tags_codes, sql = pull.message_filter
        began_ms = self._clock()
        found = self._store.pull(pull.topic, pull.queue_id, pull.offset, pull.max_messages, self._max_bytes, tags_codes, sql)
        self._statistics.max_pull_ms = max(self._statistics.max_pull_ms, self._clock() - began_ms)
        return found

    def _answer(self, pull: HeldPull, code: ResponseCode, found: PulledMessages) -> bytes:
        records = found.records
        if records:
            length = sum([len(record) for record in records])
            count(self._statistics.traffic.pulled, (pull.topic, pull.group), len(records), length)
            self._statistics.flows.got(pull.topic, pull.group, len(records), length)
            self._statistics.pulls_found += 1
            self._statistics.messages_got += len(records)
        else:
            self._statistics.pulls_missed += 1
        header = PullMessageResponseHeader(
            suggest_which_broker_id=MASTER_ID,
            next_begin_offset=found.next_begin_offset,
            min_offset=found.min_offset,
            max_offset=found.max_offset,
        )
        return encode_response_in_parts(pull.reply_to, code, header, records, found.status.name)

    def _suspension_ms(self, header: PullMessageRequestHeader) -> int:
        if self._short_polling_ms is not None:
            return self._short_polling_ms
        return max(0, min(header.suspend_timeout_millis, MAX_SUSPENSION_MS))

    def _message_filter(self, header: PullMessageRequestHeader) -> MessageFilter:
        """Returns the filter in the pull, or the filter in the group's heartbeats if the pull has none. Raises RequestRefused."""
        if header.sys_flag & pull_sysflag.SUBSCRIPTION:
            return self._filters.of_expression(header.expression_type, header.subscription)
        subscription = self._subscription(header)
        if subscription.sub_version < header.sub_version:
            raise RequestRefused(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
        return self._filters.of_subscription(subscription)

    def _subscription(self, header: PullMessageRequestHeader) -> SubscriptionData:
        group = self._consumers.find(header.consumer_group)
        if group is None:
            raise RequestRefused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist")
        if (
            group.message_model is MessageModel.BROADCASTING
            and not self._groups.for_consuming(header.consumer_group).consume_broadcast_enable
        ):
            remark = f"the consumer group[{header.consumer_group}] can not consume by broadcast way"
            raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
        subscription = group.subscriptions.get(header.topic)
        if subscription is None:
            raise RequestRefused(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist")
        return subscription


def _code(found: PulledMessages, offset: int) -> ResponseCode:
    code = _CODES.get(found.status)
    if code is not None:
        return code
    return ResponseCode.PULL_NOT_FOUND if offset == 0 else ResponseCode.PULL_OFFSET_MOVED
