"""Reports the progress of consumer groups (part of RocketMQ's AdminBrokerProcessor)."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from rocketmq_broker.message import MessageQueue, topics
from rocketmq_broker.protocol.bodies.group import (
    ConsumerOffsetSerializeWrapper,
    ConsumeStats,
    ConsumeStatsList,
    OffsetWrapper,
    QueryCorrectionOffsetBody,
)
from rocketmq_broker.protocol.bodies.topic import QueryConsumeTimeSpanBody, QueueTimeSpan
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.group import (
    CloneGroupOffsetRequestHeader,
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
    QueryCorrectionOffsetHeader,
)
from rocketmq_broker.protocol.queue_table import MessageQueueData, QueueTable
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused, Steps
from rocketmq_broker.remoting.long_tables import refuse_long, table_in_steps
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.popping import InHand
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.server.topics.names import refuse_as_consumer, refuse_offsets
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import ConsumerOffsets, MessageStore

_LONG_MAX: Final = (1 << 63) - 1

MAX_QUEUES_SHOWN: Final = 15_000
"""The maximum number of queues in one response. A topic may have 10,000 queues."""
NAMES_AT_ONCE: Final = 500
QUEUES_ENCODED_AT_ONCE: Final = 500
QUEUES_AT_ONCE: Final = 50
"""The number of a topic's queues that one step handles. A step of this size takes about a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressProcessor:
    """Compares the offsets of consumer groups with the ends of the queues."""

    identity: BrokerIdentity
    store: MessageStore
    topic_table: TopicTable
    subscription_groups: SubscriptionGroupTable
    consumer_groups: ConsumerGroups
    offsets: ConsumerOffsets
    offset_commits: OffsetCommits
    in_hand: InHand
    clock: Callable[[], int]
    pulled_per_second: Callable[[str, str], float] = lambda topic, group: 0.0

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests for progress, and of the request to copy offsets to another group."""
        return {
            RequestCode.GET_CONSUME_STATS: self.get_consume_stats,
            RequestCode.GET_BROKER_CONSUME_STATS: self.get_all_consume_stats,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self.get_all_offsets,
            RequestCode.QUERY_CONSUME_TIME_SPAN: self.get_time_span,
            RequestCode.QUERY_CORRECTION_OFFSET: self.get_correction_offset,
            RequestCode.CLONE_GROUP_OFFSET: self.clone_offsets,
        }

    def get_consume_stats(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with a group's progress in one topic, or in all topics where it has offsets."""
        header = command.decode_header(GetConsumeStatsRequestHeader)
        names = [header.topic] if (header.topic or "").strip() else sorted(self.offsets.topics_of(header.consumer_group))
        progress = yield from self._progress(header.consumer_group, names)
        body = yield from _encoded(progress)
        return encode_response(command, ResponseCode.SUCCESS, body=body)

    def get_all_consume_stats(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the progress of all groups, separately for each topic."""
        is_order = command.decode_header(GetConsumeStatsInBrokerHeader).is_order
        whole = ConsumeStatsList(broker_addr=self.identity.address)
        groups: list[bytes] = []
        length = 0
        for group in list(self.subscription_groups.groups):
            stats: list[bytes] = []
            for name in sorted(self.offsets.topics_of(group.group_name)):
                config = self.topic_table.get(name)
                if config is None or (is_order and not config.order):
                    continue
                progress = yield from self._progress(group.group_name, [name])
                if progress.offset_table:
                    # Encode each part at once: encoding everything at the end would block the event loop.
                    stats.append((yield from _encoded(progress)))
                    length += len(stats[-1])
                    refuse_long(length, "request one group at a time (consumerProgress -g)")
                    whole.total_diff += sum(
                        offsets.broker_offset - offsets.consumer_offset for offsets in progress.offset_table.values()
                    )
            entry = ConsumeStatsList(consume_stats_list=[{group.group_name: []}]).encode()
            groups.append(entry[entry.index(b"[{") + 1 : entry.index(b"[]")] + b"[" + b",".join(stats) + b"]}")
            yield
        body = whole.encode().replace(b"[]", b"[" + b",".join(groups) + b"]", 1)
        return encode_response(command, ResponseCode.SUCCESS, body=body)

    def get_all_offsets(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with all offsets of all groups."""
        body = yield from table_in_steps(
            self.offsets.entries(),
            lambda table: ConsumerOffsetSerializeWrapper(offset_table=table).encode(),
            at_once=NAMES_AT_ONCE,
            advice="read consumerOffset.json",
        )
        return encode_response(command, ResponseCode.SUCCESS, body=body)

    def get_time_span(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the time span of the messages in each queue of a topic.

        The response also contains the delay of the group's consumption in each queue.
        """
        header = command.decode_header(QueryConsumeTimeSpanRequestHeader)
        config = self.topic_table.existing(header.topic)
        spans = []
        for queue_id in range(config.write_queue_nums):
            spans.append(self._time_span(header.group, header.topic, queue_id))
            if queue_id % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
                yield
        return encode_response(command, ResponseCode.SUCCESS, body=QueryConsumeTimeSpanBody(consume_time_span_set=spans).encode())

    def get_correction_offset(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Responds with the lowest offset in each queue of a topic, over all groups that the request does not exclude.

        The offset is 2**63 - 1 for a queue in which the request's compare group has a lower offset.
        """
        header = command.decode_header(QueryCorrectionOffsetHeader)
        left_out = set((header.filter_groups or "").split(","))
        lowest: dict[int, int] = {}
        for group in self.offsets.groups_of(header.topic) - left_out:
            for queue_id, offset in self.offsets.of_topic(group, header.topic).items():
                lowest[queue_id] = min(offset, lowest.get(queue_id, offset))
            yield
        for queue_id, offset in self.offsets.of_topic(header.compare_group, header.topic).items():
            if lowest.get(queue_id, _LONG_MAX) > offset:
                lowest[queue_id] = _LONG_MAX
        body = QueryCorrectionOffsetBody(correction_offsets=lowest)
        return encode_response(command, ResponseCode.SUCCESS, body=body.encode())

    def clone_offsets(self, connection: Connection, command: RemotingCommand) -> Steps:
        """Copies the offsets of one group to another."""
        header = command.decode_header(CloneGroupOffsetRequestHeader)
        if header.topic and header.topic.strip():
            names = {header.topic}
        else:
            names = self.offsets.topics_of(header.src_group) - topics.CONSUMED_BY_THE_BROKER
        refuse_as_consumer(header.dest_group)
        for name in names:
            refuse_offsets(header.dest_group, name)
        for number, name in enumerate(names):
            if name and (header.offline or self._concerns(header.src_group, name)):
                new = len(self.offsets.of_topic(header.src_group, name)) - len(self.offsets.of_topic(header.dest_group, name))
                self.offset_commits.refuse_if_full(header.dest_group, new)
                self.offsets.clone(header.src_group, header.dest_group, name)
            if number % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
                yield
        return encode_response(command, ResponseCode.SUCCESS)

    def _concerns(self, group_name: str, topic: str) -> bool:
        """Returns True if the group subscribes to the topic, or if the topic contains the group's pop retries.

        An offline group counts as subscribed to all topics.
        """
        group = self.consumer_groups.find(group_name)
        if group is None or not group.subscriptions or topic in group.subscriptions:
            return True
        return any(topic == topics.pop_retry_topic(group_name, subscribed) for subscribed in group.subscriptions)

    def _progress(self, group: str, names: Iterable[str | None]) -> Generator[None, None, ConsumeStats]:
        stats = ConsumeStats()
        for name in names:
            config = self.topic_table.get(name) if name else None
            if name is None or config is None or not self._concerns(group, name):
                continue
            if len(stats.offset_table) + config.read_queue_nums > MAX_QUEUES_SHOWN:
                remark = f"group {group} consumes more than {MAX_QUEUES_SHOWN} queues; request one topic at a time"
                raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
            for queue_id in range(config.read_queue_nums):
                offsets = self._offsets_of(group, name, queue_id)
                stats.offset_table[MessageQueue(name, self.identity.name, queue_id)] = offsets
                if queue_id % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1 or offsets.in_hand:
                    yield
            yield
            stats.consume_tps += self.pulled_per_second(name, group)
        return stats

    def _offsets_of(self, group: str, topic: str, queue_id: int) -> OffsetWrapper:
        consumed = max(self.offsets.get(group, topic, queue_id) or 0, 0)
        last = self.store.store_time(topic.encode(), queue_id, consumed - 1) if consumed else 0
        return OffsetWrapper(
            broker_offset=self.store.max_offset(topic.encode(), queue_id),
            consumer_offset=consumed,
            last_timestamp=max(last, 0),
            pull_offset=consumed + self.in_hand.count(group, topic, queue_id),
            popped=self.in_hand.progress(group, topic, queue_id) or UNSET,
        )

    def _time_span(self, group: str, topic: str, queue_id: int) -> QueueTimeSpan:
        name = topic.encode()
        max_offset = self.store.max_offset(name, queue_id)
        consumed = self.offsets.get(group, topic, queue_id) or 0
        oldest_ms = self.store.store_time(name, queue_id, self.store.min_offset(name, queue_id))
        newest_ms = self.store.store_time(name, queue_id, max_offset - 1)
        consumed_ms = self.store.store_time(name, queue_id, consumed - 1) if consumed else oldest_ms
        is_behind = consumed < max_offset
        return QueueTimeSpan(
            message_queue=MessageQueueData(broker_name=self.identity.name, queue_id=queue_id, topic=topic),
            min_time_stamp=oldest_ms,
            max_time_stamp=newest_ms,
            consume_time_stamp=consumed_ms,
            delay_time=self.clock() - self.store.store_time(name, queue_id, consumed) if is_behind else 0,
            min_time_stamp_str=_time_text(oldest_ms),
            max_time_stamp_str=_time_text(newest_ms),
            consume_time_stamp_str=_time_text(consumed_ms),
        )


def _encoded(progress: ConsumeStats) -> Generator[None, None, bytes]:
    return table_in_steps(
        progress.offset_table.items(),
        lambda part: ConsumeStats(offset_table=QueueTable(part), consume_tps=progress.consume_tps).encode(),
        at_once=QUEUES_ENCODED_AT_ONCE,
        advice="request one topic at a time",
    )


def _time_text(timestamp_ms: int) -> str:
    """Formats a time as RocketMQ does (UtilAll's YYYY_MM_DD_HH_MM_SS_SSS)."""
    return time.strftime("%Y-%m-%d#%H:%M:%S", time.localtime(timestamp_ms // 1000)) + f":{timestamp_ms % 1000:03d}"
