"""Converts stored messages to messages of the API (RocketMQ's GrpcConverter.buildMessage)."""

import hashlib

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.message import MessageExt
from rocketmq_broker.proxy.messages.names import DELIVER_MS, MESSAGE_GROUP, OF_SYSTEM, TRACE_CONTEXT
from rocketmq_broker.proxy.protos import definition_pb2 as api


def of_stored(message: MessageExt, topic: str) -> api.Message:
    """Converts a stored message with an uncompressed body. `topic` is the topic name to show to the client."""
    named = message.properties
    system = api.SystemProperties(
        keys=message.keys,
        message_id=message.message_id,
        body_digest=api.Digest(type=api.MD5, checksum=hashlib.md5(message.body, usedforsecurity=False).hexdigest().upper()),
        body_encoding=api.IDENTITY,
        message_type=_type(message),
        born_host=message.born_host,
        store_host=message.store_host,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        delivery_attempt=message.reconsume_times + 1,
        message_group=named.get(MESSAGE_GROUP),
        trace_context=named.get(TRACE_CONTEXT),
        tag=message.tags,
    )
    system.born_timestamp.FromMilliseconds(_within_dates(message.born_timestamp))
    system.store_timestamp.FromMilliseconds(message.store_timestamp)
    deliver_ms = named.get(DELIVER_MS, "")
    if deliver_ms.isdecimal():
        system.delivery_timestamp.FromMilliseconds(_within_dates(int(deliver_ms)))
    return api.Message(
        topic=api.Resource(name=topic),
        user_properties={name: value for name, value in named.items() if name not in OF_SYSTEM},
        system_properties=system,
        body=message.body,
    )


_LATEST_MS = 253_402_300_799_999
"""The latest time of a Timestamp in milliseconds, the end of the year 9999. Clients may set later times in stored messages."""


def _within_dates(time_ms: int) -> int:
    return min(max(time_ms, 0), _LATEST_MS)


def _type(message: MessageExt) -> api.MessageType:
    named = message.properties
    if named.get(props.TRANSACTION_PREPARED) == "true":
        return api.TRANSACTION
    if props.DELAY_TIME_LEVEL in named or DELIVER_MS in named:
        return api.DELAY
    return api.FIFO if MESSAGE_GROUP in named else api.NORMAL
