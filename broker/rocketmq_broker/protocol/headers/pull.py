"""Headers of pulls and of requests about offsets."""

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32, Int64
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
    """The result of a pull, and the offset of the next one."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64


class QueryConsumerOffsetRequestHeader(CommandHeader):
    """The header of QUERY_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class QueryConsumerOffsetResponseHeader(CommandHeader):
    """The group's offset on a queue."""

    offset: Int64


class UpdateConsumerOffsetRequestHeader(CommandHeader):
    """The header of UPDATE_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMaxOffsetRequestHeader(CommandHeader):
    """The header of GET_MAX_OFFSET."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMaxOffsetResponseHeader(CommandHeader):
    """The offset that the next message of a queue gets."""

    offset: Int64


class GetMinOffsetRequestHeader(CommandHeader):
    """The header of GET_MIN_OFFSET."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMinOffsetResponseHeader(CommandHeader):
    """The offset of the oldest message of a queue."""

    offset: Int64


class SearchOffsetRequestHeader(CommandHeader):
    """The header of SEARCH_OFFSET_BY_TIMESTAMP."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class SearchOffsetResponseHeader(CommandHeader):
    """The offset for a time."""

    offset: Int64


class GetEarliestMsgStoretimeRequestHeader(CommandHeader):
    """The header of GET_EARLIEST_MSG_STORETIME."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetEarliestMsgStoretimeResponseHeader(CommandHeader):
    """The store timestamp of the oldest message of a queue."""

    timestamp: Int64
