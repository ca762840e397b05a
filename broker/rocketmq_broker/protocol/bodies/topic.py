"""The settings of topics and subscription groups, tables of these settings, and the offsets and times of queues."""

import msgspec

from rocketmq_broker.message.configs import SubscriptionGroupConfig, TopicConfig
from rocketmq_broker.protocol.body import Body, BodyPart
from rocketmq_broker.protocol.queue_table import MessageQueueData, QueueTable


class DataVersion(Body):
    """The version of a table: the time of its last change and the number of changes (RocketMQ's DataVersion)."""

    timestamp: int = 0
    """The time of the last change in milliseconds since the epoch."""
    counter: int = 0


class TopicConfigAndQueueMapping(TopicConfig, Body):
    """The response body of GET_TOPIC_CONFIG."""


class TopicConfigSerializeWrapper(Body):
    """The response body of GET_ALL_TOPIC_CONFIG, with all topics of a broker."""

    topic_config_table: dict[str, TopicConfig] = {}
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)


class SubscriptionGroupBody(SubscriptionGroupConfig, Body):
    """The body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP."""


class SubscriptionGroupWrapper(Body):
    """The response body of GET_ALL_SUBSCRIPTIONGROUP_CONFIG, with all consumer groups of a broker."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = {}
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)


class TopicList(Body):
    """A list of topic names."""

    topic_list: list[str] = []
    broker_addr: str | None = None


class TopicOffset(BodyPart):
    """The first offset of a queue, and the offset of its next message."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0
    """The store time of the queue's last message in milliseconds since the epoch, or 0 if the queue has no message."""


class TopicStatsTable(Body):
    """The response body of GET_TOPIC_STATS_INFO, with the offsets of a topic's queues."""

    lenient_limit = None
    offset_table: QueueTable[TopicOffset] = msgspec.field(default_factory=QueueTable)


class QueueTimeSpan(BodyPart):
    """The store times of a queue's oldest, newest and last consumed messages, in milliseconds since the epoch.

    The fields named `…_str` contain the times as text in the broker's local time: `2026-11-22#01:35:12:345`.
    """

    message_queue: MessageQueueData
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0
    """The lag of the group in milliseconds."""
    min_time_stamp_str: str = ""
    max_time_stamp_str: str = ""
    consume_time_stamp_str: str = ""


class QueryConsumeTimeSpanBody(Body):
    """The response body of QUERY_CONSUME_TIME_SPAN."""

    consume_time_span_set: list[QueueTimeSpan] = []
