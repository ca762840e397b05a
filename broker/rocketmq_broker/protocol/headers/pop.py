"""Headers of pops and of what follows a pop (RocketMQ 5)."""

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class PopMessageRequestHeader(CommandHeader, kw_only=True):
    """POP_MESSAGE. The queue id is -1 for all queues, `init_mode` 0 to begin with a queue's first message, 1 at its end."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64 = 0
    init_mode: Int32
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class PopMessageResponseHeader(CommandHeader):
    """The parts of the messages' receipt handles. Each info lists queues, `retry queueId value;...`."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckMessageRequestHeader(CommandHeader):
    """ACK_MESSAGE; `extra_info` is the receipt handle."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class ChangeInvisibleTimeRequestHeader(CommandHeader):
    """CHANGE_MESSAGE_INVISIBLETIME; the invisible time is milliseconds from now."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class ChangeInvisibleTimeResponseHeader(CommandHeader):
    """What changes in the receipt handle."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class NotificationRequestHeader(CommandHeader, kw_only=True):
    """NOTIFICATION. The queue id is -1 for all queues; the poll time is milliseconds."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64 = 0
    order: bool | None = None
    attempt_id: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class NotificationResponseHeader(CommandHeader):
    """Whether there are messages; whether too many wait already for the broker to let this one wait."""

    has_msg: bool
    polling_full: bool = False
