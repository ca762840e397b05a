"""Messages in wire form, with id, compressed body and flags (RocketMQ's DefaultMQProducerImpl.sendKernelImpl)."""

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
    """Raises TypeError unless `message` is a Message, and MessageRefused if no broker would accept it.

    Follows RocketMQ's Validators.checkMessage.
    """
    if not isinstance(message, Message):
        raise TypeError(f"message must be a Message, not {kind_of(message)}: create one with Message.of(topic, body)")
    try:
        topics.validate_topic(message.topic)
    except IllegalMessage as error:
        raise MessageRefused(f"topic {message.topic!r}: {error}") from None
    if message.topic in topics.NOT_ALLOWED_SEND_TOPICS:
        raise MessageRefused(f"topic {message.topic} is reserved for the broker: send to another topic")
    if not message.body:
        raise MessageRefused(f"the body of a message to topic {message.topic} must not be empty")
    if len(message.body) > MAX_MESSAGE_SIZE:
        raise MessageRefused(f"message body too long: {len(message.body)} bytes, at most {MAX_MESSAGE_SIZE}")


def with_unique_id(message: Message, unique_id: str, *, replace: bool = False) -> Message:
    """Returns the message with this id. An existing id is kept unless `replace` is set."""
    return message if message.transaction_id and not replace else message.with_properties({properties.UNIQUE_KEY: unique_id})


def to_wire(message: Message, *, compress_over: int = COMPRESS_BODY_OVER) -> WireMessage:
    """Returns the wire form of a message that has an id. Raises MessageRefused if its properties are too long."""
    body, sys_flag = _compressed(message.body, compress_over)
    if message.properties.get(properties.TRANSACTION_PREPARED) == "true":
        sys_flag |= sysflag.TRANSACTION_PREPARED_TYPE
    carried = dict(message.properties)
    reconsume_times = 0
    max_reconsume_times = None
    if message.topic.startswith(topics.RETRY_PREFIX):  # the broker reads them from the header for retry topics only
        reconsume_times = int(carried.pop(properties.RECONSUME_TIME, "0"))
        limit = carried.pop(properties.MAX_RECONSUME_TIMES, None)
        max_reconsume_times = None if limit is None else int(limit)
    return WireMessage(
        message.topic,
        body,
        _encoded_properties(carried, _max_properties_length(message.topic)).decode(),
        message.flag,
        sys_flag,
        message.transaction_id or "",
        is_reply=message.properties.get(properties.MESSAGE_TYPE) == properties.REPLY,
        reconsume_times=reconsume_times,
        max_reconsume_times=max_reconsume_times,
    )


def to_wire_batch(messages: Sequence[Message]) -> WireMessage:
    """Encodes messages, which must have ids, as one request (RocketMQ's MessageBatch).

        TOTALSIZE 4 | 0 4 | 0 4 | FLAG 4 | BODYLENGTH 4 | body | PROPERTIESLENGTH 2 | properties

    Raises MessageRefused if the topics differ, if a message is delayed or transactional, or if the batch is too long.
    """
    if not messages:
        raise MessageRefused("a batch needs at least one message")
    topic = messages[0].topic
    for message in messages:
        if message.topic != topic:
            raise MessageRefused(f"all messages of a batch must have the same topic, not {topic} and {message.topic}")
        if message.topic.startswith(topics.RETRY_PREFIX):
            raise MessageRefused(f"topic {topic} does not accept batches: it is a retry topic")
        if properties.DELAY_TIME_LEVEL in message.properties or properties.TRANSACTION_PREPARED in message.properties:
            raise MessageRefused("a batch must not contain delayed or transactional messages")
    body = b"".join(_batch_part(message) for message in messages)
    if len(body) > MAX_MESSAGE_SIZE:
        raise MessageRefused(f"batch too long: {len(body)} bytes, at most {MAX_MESSAGE_SIZE}; send smaller batches")
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


def _max_properties_length(topic: str) -> int:
    """Returns the maximum length of the properties. It is larger for retry topics, because redeliveries add properties."""
    return properties.MAX_PROPERTIES_LENGTH if topic.startswith(topics.RETRY_PREFIX) else properties.MAX_SENT_PROPERTIES_LENGTH


def _encoded_properties(named: Mapping[str, str], max_length: int) -> bytes:
    try:
        encoded = properties.encode(named)
    except IllegalMessage as error:
        raise MessageRefused(str(error)) from None
    if len(encoded) > max_length:
        raise MessageRefused(f"message properties too long: {len(encoded)} bytes, at most {max_length}")
    return encoded
