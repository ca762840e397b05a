"""Pulling and offsets."""

import msgspec

from rocketmq_broker.message.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class PullMessageRequestHeader(CommandHeader, kw_only=True):
    """PULL_MESSAGE. The bits of `sys_flag` are PullSysFlag's."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64
    suspend_timeout_millis: Int64
    subscription: str | None = None
    sub_version: Int64
    expression_type: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class PullMessageResponseHeader(CommandHeader):
    """What a pull found, and where the next one begins."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64


class QueryConsumerOffsetRequestHeader(CommandHeader):
    """QUERY_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class QueryConsumerOffsetResponseHeader(CommandHeader):
    """How far a group has consumed a queue."""

    offset: Int64


class UpdateConsumerOffsetRequestHeader(CommandHeader):
    """UPDATE_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMaxOffsetRequestHeader(CommandHeader):
    """GET_MAX_OFFSET."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMaxOffsetResponseHeader(CommandHeader):
    """The offset that the next message of a queue gets."""

    offset: Int64


class GetMinOffsetRequestHeader(CommandHeader):
    """GET_MIN_OFFSET."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMinOffsetResponseHeader(CommandHeader):
    """The offset of the oldest message of a queue."""

    offset: Int64


class SearchOffsetRequestHeader(CommandHeader):
    """SEARCH_OFFSET_BY_TIMESTAMP."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class SearchOffsetResponseHeader(CommandHeader):
    """The offset that stands for a time."""

    offset: Int64


class GetEarliestMsgStoretimeRequestHeader(CommandHeader):
    """GET_EARLIEST_MSG_STORETIME."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetEarliestMsgStoretimeResponseHeader(CommandHeader):
    """When the oldest message of a queue was stored."""

    timestamp: Int64
