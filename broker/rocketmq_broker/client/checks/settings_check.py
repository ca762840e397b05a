"""Checks of a program's settings: names, types and ranges. Each refusal names the mistake and its correction."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from enum import Enum

from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.message import IllegalMessage, topics
from rocketmq_broker.message.text.mistakes import kind_of, nearest_name, no_such_parameter


def check_group(role: str, group: object) -> None:
    """Raises IllegalConfiguration if no group can have this name; `role` is `producer` or `consumer`."""
    if not isinstance(group, str):
        raise IllegalConfiguration(f"the {role} group is {kind_of(group)}; a str is expected")
    try:
        if role == "consumer":
            topics.validate_consumer_group(group)
        else:
            topics.validate_group(group)
    except IllegalMessage as error:
        raise IllegalConfiguration(f"{role} group {group!r}: {error}") from None


def check_topic(topic: object) -> None:
    """Raises IllegalConfiguration if no topic can have this name."""
    if not isinstance(topic, str):
        raise IllegalConfiguration(f"the topic is {kind_of(topic)}; a str is expected")
    try:
        topics.validate_topic(topic)
    except IllegalMessage as error:
        raise IllegalConfiguration(f"topic {topic!r}: {error}") from None


def refuse_unknown(client: object, unknown: Mapping[str, object], known: Iterable[str] = ()) -> None:
    """Raises IllegalConfiguration if any setting is unknown. The class's parameters and those in `known` are known."""
    if unknown:
        parameters = inspect.signature(type(client)).parameters.values()
        named = [parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        raise IllegalConfiguration(no_such_parameter(type(client).__name__, unknown, [*named, *known]))


def check_whole_number(name: str, value: object, *, least: int, most: int | None = None) -> None:
    """Raises IllegalConfiguration unless the value is a whole number in the range."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise IllegalConfiguration(f"{name} is {value!r} ({kind_of(value)}); a whole number is expected")
    if value < least or (most is not None and value > most):
        wanted = f"at least {least}" if most is None else f"{least} to {most}"
        raise IllegalConfiguration(f"{name} is {value}; it has to be {wanted}")


def check_member(name: str, value: object, members: type[Enum]) -> None:
    """Raises IllegalConfiguration unless the value is a member of the enumeration."""
    if isinstance(value, members):
        return
    names = [member.name for member in members]
    meant = nearest_name(value, names) if isinstance(value, str) else None
    hint = f". Did you mean {members.__name__}.{meant}?" if meant else "."
    raise IllegalConfiguration(
        f"{name} is {value!r} ({kind_of(value)}); a member of {members.__name__} is expected{hint} It has: {', '.join(names)}"
    )
