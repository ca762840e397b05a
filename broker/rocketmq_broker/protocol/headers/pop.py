"""Headers of pops, acknowledgements and changes of the invisible time (RocketMQ 5)."""

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class PopMessageRequestHeader(CommandHeader, kw_only=True):
    """The header of POP_MESSAGE.

    Queue id -1 means all queues. `init_mode` is 0 to start at a queue's first message, and 1 to start at its end.
    """

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
    """The header of the response to POP_MESSAGE, with the parts of the messages' receipt handles.

    Each info field contains an entry for each queue: `retry queueId value;...`.
    """

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckMessageRequestHeader(CommandHeader):
    """The header of ACK_MESSAGE. `extra_info` is the receipt handle."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class ChangeInvisibleTimeRequestHeader(CommandHeader):
    """The header of CHANGE_MESSAGE_INVISIBLETIME. The new invisible time starts now and is in milliseconds."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class ChangeInvisibleTimeResponseHeader(CommandHeader):
    """The header of the response to CHANGE_MESSAGE_INVISIBLETIME, with the changed parts of the receipt handle."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class NotificationRequestHeader(CommandHeader, kw_only=True):
    """The header of NOTIFICATION. Queue id -1 means all queues. The poll time is in milliseconds."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64 = 0
    order: bool | None = None
    attempt_id: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class NotificationResponseHeader(CommandHeader):
    """The header of the response to NOTIFICATION. `polling_full` is True if too many requests wait at the broker."""

    has_msg: bool
    polling_full: bool = False
