"""Checks the names, types and ranges of settings. Each error describes the mistake and how to correct it."""

import inspect
from collections.abc import Iterable, Mapping
from enum import Enum

from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.message import IllegalMessage, topics
from rocketmq_broker.message.text.mistakes import kind_of, nearest_name, no_such_parameter


def check_group(role: str, group: object) -> None:
    """Raises IllegalConfiguration if `group` is not a valid group name; `role` is `producer` or `consumer`."""
    if not isinstance(group, str):
        raise IllegalConfiguration(f"the {role} group must be a str, not {kind_of(group)}")
    try:
        if role == "consumer":
            topics.validate_consumer_group(group)
        else:
            topics.validate_group(group)
    except IllegalMessage as error:
        raise IllegalConfiguration(f"{role} group {group!r}: {error}") from None


def check_topic(topic: object) -> None:
    """Raises IllegalConfiguration if `topic` is not a valid topic name."""
    if not isinstance(topic, str):
        raise IllegalConfiguration(f"the topic must be a str, not {kind_of(topic)}")
    try:
        topics.validate_topic(topic)
    except IllegalMessage as error:
        raise IllegalConfiguration(f"topic {topic!r}: {error}") from None


def refuse_unknown(client: object, unknown: Mapping[str, object], known: Iterable[str] = ()) -> None:
    """Raises IllegalConfiguration if `unknown` is not empty. The message lists the client's parameters and `known`."""
    if unknown:
        parameters = inspect.signature(type(client)).parameters.values()
        named = [parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        raise IllegalConfiguration(no_such_parameter(type(client).__name__, unknown, [*named, *known]))


def check_whole_number(name: str, value: object, *, minimum: int, maximum: int | None = None) -> None:
    """Raises IllegalConfiguration unless the value is an int from `minimum` to `maximum`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise IllegalConfiguration(f"{name} must be an int, not {value!r} ({kind_of(value)})")
    if value < minimum or (maximum is not None and value > maximum):
        expected = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        raise IllegalConfiguration(f"{name} must be {expected}, not {value}")


def check_member(name: str, value: object, members: type[Enum]) -> None:
    """Raises IllegalConfiguration unless the value is a member of the enumeration."""
    if isinstance(value, members):
        return
    names = [member.name for member in members]
    meant = nearest_name(value, names) if isinstance(value, str) else None
    hint = f". Did you mean {members.__name__}.{meant}?" if meant else "."
    raise IllegalConfiguration(
        f"{name} must be a member of {members.__name__}, not {value!r} ({kind_of(value)}){hint} Members: {', '.join(names)}"
    )
