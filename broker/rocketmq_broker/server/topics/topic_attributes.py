"""A topic's attributes beyond its queues, as in RocketMQ 5 (TopicAttributes, AttributeParser and AttributeUtil).

    +message.type=FIFO,-message.type

`+` sets an attribute, `-` removes it. The broker stores and returns them; like RocketMQ it checks no message against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


class IllegalAttributes(Exception):
    """An illegal change of attributes; the text names the attribute and the reason."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    values: tuple[str, ...]
    """Those that this broker can keep to."""
    is_changeable: bool = True
    """Whether it may be changed after the topic's creation."""


_ATTRIBUTES: Final[Mapping[str, _Attribute]] = MappingProxyType(
    {
        "message.type": _Attribute(("DELAY", "FIFO", "NORMAL", "TRANSACTION", "UNSPECIFIED")),
        "queue.type": _Attribute(("SimpleCQ",), is_changeable=False),
        "cleanup.policy": _Attribute(("DELETE",), is_changeable=False),
        "reserve.time": _Attribute(("-1",)),
    }
)


def changed_attributes(current: Mapping[str, str], changes: str, *, is_new: bool) -> dict[str, str]:
    """Returns a topic's attributes after the changes; `is_new` for a topic being created. Raises IllegalAttributes."""
    attributes = dict(current)
    seen: set[str] = set()
    for change in filter(None, changes.split(",")):
        sign, (name, has_value, value) = change[0], change[1:].partition("=")
        if sign not in "+-" or bool(has_value) != (sign == "+"):
            raise IllegalAttributes(f"{change}: +NAME=VALUE sets an attribute, -NAME takes one away")
        if name in seen:
            raise IllegalAttributes(f"{name}: it is changed twice")
        seen.add(name)
        if sign == "+":
            _check_value(name, value)
        if attributes.get(name) == value:
            continue
        _check_changeable(name, is_new=is_new)
        if sign == "+":
            attributes[name] = value
        elif attributes.pop(name, None) is None:
            raise IllegalAttributes(f"{name}: the topic has no such attribute to take away")
    return attributes


def _check_value(name: str, value: str) -> None:
    values = _attribute(name).values
    if value not in values:
        raise IllegalAttributes(f"{name}={value}: not supported by this broker; it knows {', '.join(values)}")


def _check_changeable(name: str, *, is_new: bool) -> None:
    if not is_new and not _attribute(name).is_changeable:
        raise IllegalAttributes(f"{name}: it can only be set when the topic is made")


def _attribute(name: str) -> _Attribute:
    attribute = _ATTRIBUTES.get(name)
    if attribute is None:
        raise IllegalAttributes(f"{name}: no attribute of topics; there are {', '.join(sorted(_ATTRIBUTES))}")
    return attribute
