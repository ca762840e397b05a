"""A message in wire form: its id, its compressed body, its flags (RocketMQ's DefaultMQProducerImpl.sendKernelImpl)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocketmq_broker.client.errors import MessageRefused
from rocketmq_broker.message import IllegalMessage, Message, properties, sysflag, topics
from rocketmq_broker.message.text.mistakes import kind_of

MAX_MESSAGE_SIZE = 4 * 1024 * 1024
COMPRESS_BODY_OVER = 4096
_COMPRESSION_LEVEL = 5
_BATCH_PART = struct.Struct(">iiiii")


@dataclass(frozen=True, slots=True)
class WireMessage:
    """The parts of a message in a send request."""

    topic: str
    body: bytes
    properties: str
    flag: int
    sys_flag: int
    unique_id: str
    is_batch: bool = False
    is_reply: bool = False
    reconsume_times: int = 0
    max_reconsume_times: int | None = None


def check_message(message: Message) -> None:
    """Raises TypeError for what is no message, MessageRefused if no broker would take it (RocketMQ's Validators.checkMessage)."""
    if not isinstance(message, Message):
        raise TypeError(f"a Message is expected, as Message.of(topic, body) makes it; this is {kind_of(message)}")
    try:
        topics.validate_topic(message.topic)
    except IllegalMessage as error:
        raise MessageRefused(f"topic {message.topic!r}: {error}") from None
    if message.topic in topics.NOT_ALLOWED_SEND_TOPICS:
        raise MessageRefused(f"topic {message.topic} is the broker's own: nobody may send to it")
    if not message.body:
        raise MessageRefused(f"a message to {message.topic} needs a body; this one is empty")
    if len(message.body) > MAX_MESSAGE_SIZE:
        raise MessageRefused(f"the body has {len(message.body)} bytes; at most {MAX_MESSAGE_SIZE} can be sent")


def with_unique_id(message: Message, unique_id: str, *, replace: bool = False) -> Message:
    """Returns the message with this id; an existing id stays unless `replace` is set."""
    return message if message.transaction_id and not replace else message.with_properties({properties.UNIQUE_KEY: unique_id})


def to_wire(message: Message, *, compress_over: int = COMPRESS_BODY_OVER) -> WireMessage:
    """Returns the wire form of a message, which must have its id. Raises MessageRefused if its properties are too long."""
    body, sys_flag = _compressed(message.body, compress_over)
    if message.properties.get(properties.TRANSACTION_PREPARED) == "true":
        sys_flag |= sysflag.TRANSACTION_PREPARED
    carried = dict(message.properties)
    reconsume_times = 0
    max_reconsume_times = None
    if message.topic.startswith(topics.RETRY_PREFIX):  # only for retry topics the broker reads them in the header
        reconsume_times = int(carried.pop(properties.RECONSUME_TIME, "0"))
        limit = carried.pop(properties.MAX_RECONSUME_TIMES, None)
        max_reconsume_times = None if limit is None else int(limit)
    return WireMessage(
        message.topic,
        body,
        _encoded_properties(carried, _most_bytes(message.topic)).decode(),
        message.flag,
        sys_flag,
        message.transaction_id or "",
        is_reply=message.properties.get(properties.MESSAGE_TYPE) == properties.REPLY,
        reconsume_times=reconsume_times,
        max_reconsume_times=max_reconsume_times,
    )


def to_wire_batch(messages: Sequence[Message]) -> WireMessage:
    """Returns several messages, which must have their ids, as one request (RocketMQ's MessageBatch).

        TOTALSIZE 4 | 0 4 | 0 4 | FLAG 4 | BODYLENGTH 4 | body | PROPERTIESLENGTH 2 | properties

    Raises MessageRefused unless all have the same topic, none is delayed or transactional, and all together fit in one message.
    """
    if not messages:
        raise MessageRefused("a batch needs at least one message")
    topic = messages[0].topic
    for message in messages:
        if message.topic != topic:
            raise MessageRefused(f"the messages of a batch need one topic; these go to {topic} and {message.topic}")
        if message.topic.startswith(topics.RETRY_PREFIX):
            raise MessageRefused("retry topics take no batches")
        if properties.DELAY_TIME_LEVEL in message.properties or properties.TRANSACTION_PREPARED in message.properties:
            raise MessageRefused("the messages of a batch may be neither delayed nor transactional")
    body = b"".join(_batch_part(message) for message in messages)
    if len(body) > MAX_MESSAGE_SIZE:
        raise MessageRefused(f"the batch has {len(body)} bytes; at most {MAX_MESSAGE_SIZE} can be sent: send smaller batches")
    return WireMessage(topic, body, "", 0, 0, ",".join(message.transaction_id or "" for message in messages), is_batch=True)


def _batch_part(message: Message) -> bytes:
    encoded = _encoded_properties(message.properties, properties.MAX_SENT_PROPERTIES_LENGTH)
    size = _BATCH_PART.size + len(message.body) + 2 + len(encoded)
    head = _BATCH_PART.pack(size, 0, 0, message.flag, len(message.body))
    return b"".join((head, message.body, len(encoded).to_bytes(2, "big"), encoded))


def _compressed(body: bytes, compress_over: int) -> tuple[bytes, int]:
    if len(body) > compress_over:
        smaller = zlib.compress(body, _COMPRESSION_LEVEL)
        if len(smaller) < len(body):
            return smaller, sysflag.COMPRESSED | sysflag.COMPRESSION_ZLIB
    return body, 0


def _most_bytes(topic: str) -> int:
    """Returns the limit of the properties. A consumer that sends a message again has added to them."""
    return properties.MAX_PROPERTIES_LENGTH if topic.startswith(topics.RETRY_PREFIX) else properties.MAX_SENT_PROPERTIES_LENGTH


def _encoded_properties(named: Mapping[str, str], most: int) -> bytes:
    try:
        encoded = properties.encode(named)
    except IllegalMessage as error:
        raise MessageRefused(str(error)) from None
    if len(encoded) > most:
        raise MessageRefused(f"the properties have {len(encoded)} bytes; at most {most} can be sent")
    return encoded
