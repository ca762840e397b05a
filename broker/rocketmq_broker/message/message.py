"""Messages as applications send and receive them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Never, Self

from rocketmq_broker.message import properties
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.named_properties import named_properties
from rocketmq_broker.message.text.mistakes import kind_of, no_such_parameter

_PARAMETERS = ("tags", "keys", "delay_time_level", "user_properties", "flag")
_INSTEAD_OF_BYTES = {str: "encode it with text.encode()", bytearray: "copy it with bytes()", memoryview: "copy it with bytes()"}
_MAPPINGS = (MappingProxyType, dict, Mapping)  # isinstance tests the first two before the slower abstract class
_MAX_NUMBER_LENGTH = 9
"""The maximum number of digits of a number in a property. Longer values are ignored, because any client can send them."""
_NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """One queue of a topic on one broker. Queues are ordered as by RocketMQ's MessageQueue.compareTo."""

    topic: str
    broker_name: str
    queue_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to send. Use `Message.of` to set well-known properties such as tags and keys."""

    topic: str
    body: bytes
    properties: Mapping[str, str] = field(default_factory=lambda: _NO_PROPERTIES)
    flag: int = 0

    def __post_init__(self) -> None:
        """Raises TypeError unless topic, body and properties have the right types."""
        if not (isinstance(self.body, bytes) and isinstance(self.topic, str) and isinstance(self.properties, _MAPPINGS)):
            raise TypeError(_wrong_type(self))

    @classmethod
    def of(
        cls,
        topic: str,
        body: bytes | str,
        *,
        tags: str | None = None,
        keys: Iterable[str] = (),
        delay_time_level: int = 0,
        user_properties: Mapping[str, str] | None = None,
        flag: int = 0,
        **unknown: Never,
    ) -> "Message":
        """Returns a message whose properties contain the tag, keys and delay level, as in RocketMQ.

        A str body is encoded in UTF-8. A key must not contain spaces. Delay level 0 means no delay; levels 1 to 18 are 1 s to
        2 h by default. Raises TypeError for a wrong type or an unknown parameter, and IllegalMessage for an invalid value.
        """
        if unknown:
            raise TypeError(no_such_parameter("Message.of", unknown, _PARAMETERS))
        _check_flag(flag)
        named = named_properties(tags, keys, delay_time_level, user_properties)
        return Message(topic=topic, body=_encoded(topic, body), properties=MappingProxyType(named), flag=flag)

    @property
    def text(self) -> str:
        """Returns the body decoded as UTF-8. Raises UnicodeDecodeError if it is not valid UTF-8."""
        return self.body.decode()

    @property
    def tags(self) -> str | None:
        """Returns the message's tag, or None."""
        return self.properties.get(properties.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        """Returns the message's keys, by which the index finds the message."""
        return tuple(self.properties.get(properties.KEYS, "").split())

    @property
    def delay_time_level(self) -> int:
        """Returns the delay level of the message, or 0. For a redelivered message, this is the level of its last delay."""
        level = self.properties.get(properties.DELAY_TIME_LEVEL, "")
        return int(level) if len(level) <= _MAX_NUMBER_LENGTH and level.isdecimal() else 0

    @property
    def transaction_id(self) -> str | None:
        """Returns the producer's message id, which is also the transaction id, or None before the message is sent."""
        return self.properties.get(properties.UNIQUE_KEY)

    def with_properties(self, added: Mapping[str, str]) -> Self:
        """Returns a copy of the message with these properties set."""
        return replace(self, properties=MappingProxyType({**self.properties, **added}))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageExt(Message):
    """A stored message, with its position and timestamps."""

    broker_name: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    store_size: int
    """The size of the whole record in bytes."""
    sys_flag: int
    body_crc: int
    born_timestamp: int
    """The time at which the producer created the message by its own clock, in milliseconds since the epoch."""
    born_host: str
    store_timestamp: int
    """The time at which the broker stored the message by its own clock, in milliseconds since the epoch."""
    store_host: str
    reconsume_times: int
    prepared_transaction_offset: int
    """The commit log offset of the half message from which this message was committed, or 0."""
    offset_message_id: str

    @property
    def message_id(self) -> str:
        """Returns the producer's message id, or the offset message id if the message has none."""
        return self.properties.get(properties.UNIQUE_KEY) or self.offset_message_id

    @property
    def message_queue(self) -> MessageQueue:
        """Returns the queue of the message."""
        return MessageQueue(self.topic, self.broker_name, self.queue_id)

    @property
    def transaction_check_times(self) -> int:
        """Returns the number of check-backs of the transaction, including this one."""
        times = self.properties.get(properties.TRANSACTION_CHECK_TIMES, "")
        return int(times) if len(times) <= _MAX_NUMBER_LENGTH and times.isdecimal() else 0


def _encoded(topic: object, body: bytes | str) -> bytes:
    if not (isinstance(body, str) and isinstance(topic, str)):
        return body  # type: ignore[return-value]  # Message raises TypeError unless it is bytes
    try:
        return body.encode()
    except UnicodeEncodeError:
        raise IllegalMessage("message body cannot be encoded in UTF-8: it contains an unpaired surrogate") from None


def _wrong_type(message: Message) -> str:
    topic, body = message.topic, message.body
    if not isinstance(topic, str):
        are_swapped = isinstance(topic, bytes) and isinstance(body, str)
        hint = ": topic and body seem to be swapped" if are_swapped else ""
        return f"message topic must be a str, not {kind_of(topic)}{hint}"
    if not isinstance(body, bytes):
        instead = _INSTEAD_OF_BYTES.get(type(body), "encode it, for example with json.dumps(body).encode()")
        return f"body of a message to topic {topic} must be bytes, not {kind_of(body)}: {instead}"
    return f"properties of a message to topic {topic} must be a dict of str, not {kind_of(message.properties)}"


def _check_flag(flag: object) -> None:
    if not isinstance(flag, int) or isinstance(flag, bool):
        raise TypeError(f"flag must be an int, not {kind_of(flag)}")
    if not -(2**31) <= flag < 2**31:
        raise IllegalMessage(f"flag must be a signed 32-bit integer, not {flag}")
