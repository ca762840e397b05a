"""The properties of a new message, from a program's parameters: tag, keys, delay level, and user properties."""

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
"""Names that only clients and brokers set: those of MessageConst.STRING_HASH_SET that this project uses."""


def named_properties(
    tags: str | None, keys: Iterable[str], delay_time_level: int, user_properties: Mapping[str, str] | None
) -> dict[str, str]:
    """Returns the properties under RocketMQ's names. Raises TypeError or IllegalMessage; the text names the correction."""
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
        raise TypeError(f"user_properties is {kind_of(given)}; a dict of names and values is expected, as in {{'color': 'red'}}")
    for name, value in given.items():
        _check_user_property(name, value)
    return dict(given)


def _check_user_property(name: object, value: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of user property {name!r} is {kind_of(name)}; a str is expected")
    if not isinstance(value, str):
        raise TypeError(f"user property {name!r} is {kind_of(value)}; a str is expected, as in str({value!r})")
    if not name or not value:
        raise IllegalMessage(f"user property {name!r} is {value!r}: RocketMQ drops properties without a name or a value")
    if name in _PARAMETERS:
        raise IllegalMessage(f"user property {name!r} is the system's own: pass it as the parameter {_PARAMETERS[name]}")
    if name in _SYSTEM:
        raise IllegalMessage(f"user property {name!r} is the system's own: choose another name")


def _check_tag(tag: object) -> None:
    if not isinstance(tag, str):
        raise TypeError(f"tags is {kind_of(tag)}; one word is expected, as in tags='created': a message has one tag")
    if "||" in tag or tag != tag.strip():
        raise IllegalMessage(f"tag {tag!r}: a message has one tag without spaces around it; '||' is for subscriptions")


def _joined_keys(keys: Iterable[str]) -> str:
    if isinstance(keys, str):
        raise TypeError(f"keys is a str; a list of keys is expected, as in keys=[{keys!r}]")
    if not isinstance(keys, Iterable) or isinstance(keys, bytes | bytearray):
        raise TypeError(f"keys is {kind_of(keys)}; a list of str is expected, as in keys=['order-1']")
    listed = list(keys)
    for key in listed:
        _check_key(key)
    return properties.KEY_SEPARATOR.join(listed)


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise TypeError(f"key {key!r} is {kind_of(key)}; a str is expected")
    if key.split() != [key]:
        raise IllegalMessage(f"key {key!r}: a key is one word; RocketMQ keeps all keys in one string with spaces between")


def _check_delay_level(level: object) -> None:
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"delay_time_level is {kind_of(level)}; a whole number is expected: 0 is at once, 1 to 18 are 1 s to 2 h")
    if level < 0:
        raise IllegalMessage(f"delay_time_level is {level}: 0 is at once, 1 to 18 are 1 s to 2 h by default")
