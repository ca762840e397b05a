"""Validates sent messages and converts their properties (RocketMQ's SendMessageActivity.buildMessage)."""

from collections.abc import Iterable, Sequence
from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.checks import refuse_control_characters
from rocketmq_broker.proxy.messages.names import DELIVER_MS, MESSAGE_GROUP, OF_SYSTEM, TRACE_CONTEXT
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.server.schedule.delay_levels import level_after

_MAX_GROUP_LENGTH: Final = 63
"""The maximum length of a message group in bytes.

RocketMQ's maxMessageGroupSize is 64, and RocketMQ refuses exactly 64 bytes as well.
"""
_MAX_PROPERTIES: Final = 128
_MAX_KEYS: Final = 128
_MAX_USER_BYTES: Final = 16 * 1024
"""The maximum total size of user properties, tag and keys, in bytes (maxUserPropertySize)."""
_MAX_RECOVERY_S: Final = 3600
"""The maximum time before a transaction's first check-back, in seconds (maxTransactionRecoverySecond)."""


class SentMessages:
    """Validates sent messages and returns their properties."""

    def __init__(self, delays_ms: Sequence[int], max_body_bytes: int) -> None:
        """Stores the limits. `delays_ms` are the broker's delay levels in milliseconds, starting with level 1."""
        self._delays_ms = delays_ms
        self._max_body_bytes = max_body_bytes

    def properties_of(self, message: api.Message, now_ms: int) -> str:
        """Returns the encoded properties to store. Raises CallRefused for an invalid message."""
        system = message.system_properties
        if not message.body:
            raise CallRefused(api.MESSAGE_BODY_EMPTY, "the message has no body")
        if len(message.body) > self._max_body_bytes:
            raise CallRefused(
                api.MESSAGE_BODY_TOO_LARGE, f"message body too long: {len(message.body)} bytes, at most {self._max_body_bytes}"
            )
        if len(system.keys) > _MAX_KEYS:
            raise CallRefused(api.ILLEGAL_MESSAGE_KEY, f"too many keys: {len(system.keys)}, at most {_MAX_KEYS}")
        named = _user_properties(message)
        _refuse_size(message)
        if not system.message_id.strip():
            raise CallRefused(api.ILLEGAL_MESSAGE_ID, "the message id must not be blank")
        refuse_control_characters(system.message_id, api.ILLEGAL_MESSAGE_ID, "the message id")
        named[props.UNIQUE_KEY] = system.message_id
        named[props.PRODUCER_GROUP] = message.topic.name
        if system.tag:
            if not system.tag.strip() or "|" in system.tag:
                raise CallRefused(api.ILLEGAL_MESSAGE_TAG, "a tag must not be blank or contain '|'")
            refuse_control_characters(system.tag, api.ILLEGAL_MESSAGE_TAG, "the tag")
            named[props.TAGS] = system.tag
        if system.keys:
            named[props.KEYS] = _keys(system.keys)
        if system.message_group:
            if not system.message_group.strip() or len(system.message_group.encode()) > _MAX_GROUP_LENGTH:
                remark = f"a message group must have 1 to {_MAX_GROUP_LENGTH} bytes, and not only spaces"
                raise CallRefused(api.ILLEGAL_MESSAGE_GROUP, remark)
            refuse_control_characters(system.message_group, api.ILLEGAL_MESSAGE_GROUP, "the message group")
            named[MESSAGE_GROUP] = system.message_group
        if system.trace_context:
            named[TRACE_CONTEXT] = system.trace_context
        if system.message_type == api.TRANSACTION:
            named[props.TRANSACTION_PREPARED] = "true"
            if system.HasField("orphaned_transaction_recovery_duration"):
                seconds = system.orphaned_transaction_recovery_duration.seconds
                if seconds > _MAX_RECOVERY_S:
                    reason = f"transaction recovery time too long: {seconds} s, at most {_MAX_RECOVERY_S}"
                    raise CallRefused(api.BAD_REQUEST, reason)
                named[props.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(max(0, seconds))
        if system.HasField("delivery_timestamp"):
            named |= self._delay(system.delivery_timestamp.seconds * 1000 + system.delivery_timestamp.nanos // 1_000_000, now_ms)
        try:
            encoded = props.encode(named)
        except IllegalMessage as error:
            raise CallRefused(api.ILLEGAL_MESSAGE_PROPERTY_KEY, str(error)) from None
        if len(encoded) > props.MAX_SENT_PROPERTIES_LENGTH:
            reason = f"message properties too long: {len(encoded)} bytes, at most {props.MAX_SENT_PROPERTIES_LENGTH}"
            raise CallRefused(api.MESSAGE_PROPERTIES_TOO_LARGE, reason)
        return encoded.decode()

    def _delay(self, deliver_ms: int, now_ms: int) -> dict[str, str]:
        """Returns the properties for the shortest sufficient delay level, because this broker supports only delay levels."""
        wait_ms = deliver_ms - now_ms
        level = level_after(wait_ms, self._delays_ms)
        if level < 0:
            raise CallRefused(api.ILLEGAL_DELIVERY_TIME, f"delay too long: {wait_ms} ms, at most {max(self._delays_ms)}")
        return {DELIVER_MS: str(deliver_ms)} | ({props.DELAY_TIME_LEVEL: str(level)} if level > 0 else {})


def type_of(message: api.Message) -> api.MessageType:
    """Returns the message's type. Raises CallRefused if the properties contradict the type, as in RocketMQ."""
    system = message.system_properties
    stated = system.message_type
    if stated == api.TRANSACTION and (system.message_group or system.HasField("delivery_timestamp")):
        reason = "a transactional message must have neither a message group nor a delivery time"
        raise CallRefused(api.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, reason)
    if stated == api.MESSAGE_TYPE_UNSPECIFIED:
        return api.FIFO if system.message_group else api.DELAY if system.HasField("delivery_timestamp") else api.NORMAL
    if stated not in (api.NORMAL, api.FIFO, api.DELAY, api.TRANSACTION):
        name = api.MessageType.Name(stated) if stated in api.MessageType.values() else str(stated)
        raise CallRefused(api.UNSUPPORTED, f"messages of type {name} are not supported by this broker")
    return stated


def sys_flag_of(message: api.Message) -> int:
    """Returns the sysFlag, with the bits for a compressed body and for a prepared transaction."""
    system = message.system_properties
    flag = sysflag.COMPRESSED if system.body_encoding == api.GZIP else 0
    return flag | sysflag.TRANSACTION_PREPARED_TYPE if system.message_type == api.TRANSACTION else flag


def _user_properties(message: api.Message) -> dict[str, str]:
    if len(message.user_properties) > _MAX_PROPERTIES:
        count = len(message.user_properties)
        raise CallRefused(api.MESSAGE_PROPERTIES_TOO_LARGE, f"too many user properties: {count}, at most {_MAX_PROPERTIES}")
    for name, value in message.user_properties.items():
        refuse_control_characters(name + value, api.ILLEGAL_MESSAGE_PROPERTY_KEY, f"the user property {name[:100]!r}")
        if name in OF_SYSTEM:
            raise CallRefused(
                api.ILLEGAL_MESSAGE_PROPERTY_KEY, f"user property {name!r} is reserved for the system: choose another name"
            )
    return dict(message.user_properties)


def _refuse_size(message: api.Message) -> None:
    system = message.system_properties
    texts = (*message.user_properties.keys(), *message.user_properties.values(), system.tag, *system.keys)
    size = sum(len(text.encode()) for text in texts)
    if size > _MAX_USER_BYTES:
        reason = f"user properties, tag and keys too long: {size} bytes, at most {_MAX_USER_BYTES}"
        raise CallRefused(api.MESSAGE_PROPERTIES_TOO_LARGE, reason)


def _keys(keys: Iterable[str]) -> str:
    for key in keys:
        if not key.strip():
            raise CallRefused(api.ILLEGAL_MESSAGE_KEY, "a key must not be blank")
        refuse_control_characters(key, api.ILLEGAL_MESSAGE_KEY, "a key")
    return props.KEY_SEPARATOR.join(keys)
