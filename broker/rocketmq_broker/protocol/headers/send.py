"""Headers of send requests and their responses."""

import functools
import struct
from typing import Final, TypeAlias

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.ext_fields import encode_key

_MSG_ID = encode_key("msgId")
_QUEUE_ID = encode_key("queueId")
_QUEUE_OFFSET = encode_key("queueOffset")
_MSG_REGION = encode_key("MSG_REGION")
_TRACE_ON = encode_key("TRACE_ON")
_TRANSACTION_ID = encode_key("transactionId")

_length = struct.Struct(">I").pack

DEFAULT_REGION_ID: Final = "DefaultRegion"
"""The name of the region that a broker has by default (regionId in MixAll and BrokerConfig)."""


@functools.lru_cache(maxsize=64)
def _json_text(text: str) -> str:
    """Encodes a string in JSON. The result is cached, because a broker has one region."""
    return msgspec.json.encode(text).decode()


class SendMessageRequestHeader(CommandHeader):
    """The header of SEND_MESSAGE, with full field names on the wire."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str = ""
    reconsume_times: Int32 = 0
    unit_mode: bool = False
    batch: bool = False
    max_reconsume_times: Int32 | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class SendMessageRequestHeaderV2(CommandHeader):
    """The header of SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE, with field names of one letter on the wire."""

    producer_group: str = msgspec.field(name="a")
    topic: str = msgspec.field(name="b")
    default_topic: str = msgspec.field(name="c")
    default_topic_queue_nums: Int32 = msgspec.field(name="d")
    queue_id: Int32 = msgspec.field(name="e")
    sys_flag: Int32 = msgspec.field(name="f")
    born_timestamp: Int64 = msgspec.field(name="g")
    flag: Int32 = msgspec.field(name="h")
    properties: str = msgspec.field(name="i", default="")
    reconsume_times: Int32 = msgspec.field(name="j", default=0)
    unit_mode: bool = msgspec.field(name="k", default=False)
    max_reconsume_times: Int32 | None = msgspec.field(name="l", default=None)
    batch: bool = msgspec.field(name="m", default=False)
    broker_name: str | None = msgspec.field(name="n", default=None)


class SendMessageResponseHeader(CommandHeader):
    """The header of the response to a send request.

    Its encoders are written by hand for speed, because they run for every message.
    """

    msg_id: str
    """The offset message id in hexadecimal digits."""
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    region_id: str = msgspec.field(name="MSG_REGION", default=DEFAULT_REGION_ID)
    is_trace_on: bool = msgspec.field(name="TRACE_ON", default=True)

    def encode_json(self) -> bytes:
        """Encodes the fields as a JSON object of strings."""
        trace_on, region_id = "true" if self.is_trace_on else "false", _json_text(self.region_id)
        id_member = (
            f',"transactionId":{msgspec.json.encode(self.transaction_id).decode()}' if self.transaction_id is not None else ""
        )
        return (
            f'{{"queueId":"{self.queue_id}","TRACE_ON":"{trace_on}","MSG_REGION":{region_id},"msgId":"{self.msg_id}",'
            f'"queueOffset":"{self.queue_offset}"{id_member}}}'
        ).encode()

    def encode_binary(self) -> bytes:
        """Encodes the fields in the format of the ROCKETMQ serializer."""
        msg_id, region_id = self.msg_id.encode(), self.region_id.encode()
        queue_id, queue_offset = b"%d" % self.queue_id, b"%d" % self.queue_offset
        trace_on = b"true" if self.is_trace_on else b"false"
        parts = [
            _MSG_ID, _length(len(msg_id)), msg_id,
            _QUEUE_ID, _length(len(queue_id)), queue_id,
            _QUEUE_OFFSET, _length(len(queue_offset)), queue_offset,
            _MSG_REGION, _length(len(region_id)), region_id,
            _TRACE_ON, _length(len(trace_on)), trace_on,
        ]  # fmt: skip
        if self.transaction_id is not None:
            transaction_id = self.transaction_id.encode()
            parts += (_TRANSACTION_ID, _length(len(transaction_id)), transaction_id)
        return b"".join(parts)


class ConsumerSendMsgBackRequestHeader(CommandHeader):
    """The header of CONSUMER_SEND_MSG_BACK, with which a consumer returns a message for redelivery."""

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class ReplyMessageRequestHeader(CommandHeader, kw_only=True):
    """The header of PUSH_REPLY_MESSAGE_TO_CLIENT, with which a broker delivers a reply to the requester."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str = ""
    reconsume_times: Int32 = 0
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Int64


SendHeader: TypeAlias = SendMessageRequestHeader | SendMessageRequestHeaderV2
"""The header of a send request in either form. Both forms have the same fields."""
