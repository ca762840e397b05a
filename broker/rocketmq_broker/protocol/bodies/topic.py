"""Topics and subscription groups: their settings, and tables of them."""

from __future__ import annotations

import msgspec

from rocketmq_broker.message import permissions
from rocketmq_broker.protocol.body import Body, BodyPart
from rocketmq_broker.protocol.command_header import Int32, Int64
from rocketmq_broker.protocol.queue_table import MessageQueueData, QueueTable


class DataVersion(Body):
    """The time and the number of a table's changes (RocketMQ's DataVersion)."""

    timestamp: int = 0
    """Milliseconds since the epoch."""
    counter: int = 0


class TopicConfig(BodyPart):
    """The settings of a topic (RocketMQ's TopicConfig)."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = permissions.READ_AND_WRITE
    """4 read, 2 write, 1 inherit."""
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """A field of RocketMQ 5. Left out for a topic without attributes, so that the body equals that of 4.9.7."""


class TopicConfigAndQueueMapping(TopicConfig, Body):
    """The answer to GET_TOPIC_CONFIG."""


class TopicConfigSerializeWrapper(Body):
    """All topics of a broker: the answer to GET_ALL_TOPIC_CONFIG."""

    topic_config_table: dict[str, TopicConfig] = {}
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)


class SubscriptionGroupConfig(Body):
    """The settings of a consumer group: the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: Int32 = 1
    retry_max_times: Int32 = 16
    broker_id: Int64 = 0
    which_broker_when_consume_slowly: Int64 = 1
    notify_consumer_ids_changed_enable: bool = True


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
