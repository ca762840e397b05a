"""Topics and subscription groups: their settings, and tables of them."""

from __future__ import annotations

import msgspec

from rocketmq_broker.message.configs import SubscriptionGroupConfig, TopicConfig
from rocketmq_broker.protocol.body import Body, BodyPart
from rocketmq_broker.protocol.queue_table import MessageQueueData, QueueTable


class DataVersion(Body):
    """The time and the number of a table's changes (RocketMQ's DataVersion)."""

    timestamp: int = 0
    """Milliseconds since the epoch."""
    counter: int = 0


class TopicConfigAndQueueMapping(TopicConfig, Body):
    """The answer to GET_TOPIC_CONFIG."""


class TopicConfigSerializeWrapper(Body):
    """All topics of a broker: the answer to GET_ALL_TOPIC_CONFIG."""

    topic_config_table: dict[str, TopicConfig] = {}
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)


class SubscriptionGroupBody(SubscriptionGroupConfig, Body):
    """The body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP."""


class SubscriptionGroupWrapper(Body):
    """All consumer groups of a broker: the answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = {}
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)


class TopicList(Body):
    """Names of topics."""

    topic_list: list[str] = []
    broker_addr: str | None = None


class TopicOffset(BodyPart):
    """The first offset of a queue, and the offset of its next message."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0
    """The time at which its last message was stored; 0 without one."""


class TopicStatsTable(Body):
    """The answer to GET_TOPIC_STATS_INFO. Only tools read it."""

    lenient_limit = None
    offset_table: QueueTable[TopicOffset] = msgspec.field(default_factory=QueueTable)


class QueueTimeSpan(BodyPart):
    """The times of a queue's oldest, newest and last consumed messages; milliseconds since the epoch.

    The members named `…_str` hold the same times as text, in the broker's local time: `2026-11-22#01:35:12:345`.
    """

    message_queue: MessageQueueData
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0
    """Milliseconds by which the group lags."""
    min_time_stamp_str: str = ""
    max_time_stamp_str: str = ""
    consume_time_stamp_str: str = ""


class QueryConsumeTimeSpanBody(Body):
    """The answer to QUERY_CONSUME_TIME_SPAN."""

    consume_time_span_set: list[QueueTimeSpan] = []
