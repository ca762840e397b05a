"""Builds the properties of a new message from its tag, keys, delay level and user properties."""

from collections.abc import Iterable, Mapping
from typing import Final

from rocketmq_broker.message import properties
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.text.mistakes import kind_of

_PARAMETERS: Final = {properties.TAGS: "tags", properties.KEYS: "keys", properties.DELAY_TIME_LEVEL: "delay_time_level"}
_SYSTEM: Final = frozenset(
    {
        properties.RETRY_TOPIC,
        properties.REAL_TOPIC,
        properties.REAL_QUEUE_ID,
        properties.TRANSACTION_PREPARED,
        properties.PRODUCER_GROUP,
        properties.MIN_OFFSET,
        properties.MAX_OFFSET,
        properties.ORIGIN_MESSAGE_ID,
        properties.RECONSUME_TIME,
        properties.MSG_REGION,
        properties.TRACE_SWITCH,
        properties.UNIQUE_KEY,
        properties.MAX_RECONSUME_TIMES,
        properties.CONSUME_START_TIME,
        properties.TRANSACTION_PREPARED_QUEUE_OFFSET,
        properties.TRANSACTION_CHECK_TIMES,
    }
)
"""The properties that user properties may not set: those in MessageConst.STRING_HASH_SET that this project uses."""


def named_properties(
    tags: str | None, keys: Iterable[str], delay_time_level: int, user_properties: Mapping[str, str] | None
) -> dict[str, str]:
    """Returns a message's properties, with the tag, keys and delay level under RocketMQ's names.

    Raises TypeError or IllegalMessage. The error message describes how to correct the argument.
    """
    named = {} if user_properties is None else _user_properties(user_properties)
    if tags is not None:
        _check_tag(tags)
    if tags:
        named[properties.TAGS] = tags
    if joined := _joined_keys(keys):
        named[properties.KEYS] = joined
    _check_delay_level(delay_time_level)
    if delay_time_level:
        named[properties.DELAY_TIME_LEVEL] = str(delay_time_level)
    return named


def _user_properties(given: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise TypeError(f"user_properties must be a dict such as {{'color': 'red'}}, not {kind_of(given)}")
    for name, value in given.items():
        _check_user_property(name, value)
    return dict(given)


def _check_user_property(name: object, value: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name of user property {name!r} must be a str, not {kind_of(name)}")
    if not isinstance(value, str):
        raise TypeError(f"user property {name!r} must be a str, not {kind_of(value)}: convert it with str({value!r})")
    if not name or not value:
        raise IllegalMessage(f"name and value of a user property must not be empty: {name!r}, {value!r}")
    if name in _PARAMETERS:
        raise IllegalMessage(f"user property {name!r} is reserved: pass it as the parameter {_PARAMETERS[name]}")
    if name in _SYSTEM:
        raise IllegalMessage(f"user property {name!r} is reserved: choose another name")


def _check_tag(tag: object) -> None:
    if not isinstance(tag, str):
        raise TypeError(f"tags must be one tag such as 'created', not {kind_of(tag)}")
    if "||" in tag or tag != tag.strip():
        raise IllegalMessage(f"tags must be one tag without '||' or surrounding spaces, not {tag!r}")


def _joined_keys(keys: Iterable[str]) -> str:
    if isinstance(keys, str):
        raise TypeError(f"keys must be a list of str, not a str: use keys=[{keys!r}]")
    if not isinstance(keys, Iterable) or isinstance(keys, bytes | bytearray):
        raise TypeError(f"keys must be a list of str such as ['order-1'], not {kind_of(keys)}")
    listed = list(keys)
    for key in listed:
        _check_key(key)
    return properties.KEY_SEPARATOR.join(listed)


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise TypeError(f"key {key!r} must be a str, not {kind_of(key)}")
    if key.split() != [key]:
        raise IllegalMessage(f"key {key!r} must be one word without spaces, because RocketMQ joins keys with spaces")


def _check_delay_level(level: object) -> None:
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"delay_time_level must be an int, not {kind_of(level)}: 0 is no delay, 1 to 18 are 1 s to 2 h")
    if level < 0:
        raise IllegalMessage(f"delay_time_level must be at least 0, not {level}: 0 is no delay, 1 to 18 are 1 s to 2 h")
