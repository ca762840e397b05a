"""The attributes of a topic, as in RocketMQ 5 (TopicAttributes, AttributeParser and AttributeUtil).

    +message.type=FIFO,-message.type

`+` sets an attribute, `-` removes it. Like RocketMQ, the broker stores attributes, but does not apply them to messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


class IllegalAttributes(Exception):
    """Raised if a change of attributes is illegal. The error text contains the attribute and the reason."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    values: tuple[str, ...]
    """The values of the attribute that this broker supports."""
    is_changeable: bool = True
    """True if the attribute may be changed after the topic was created."""


_ATTRIBUTES: Final[Mapping[str, _Attribute]] = MappingProxyType(
    {
        "message.type": _Attribute(("DELAY", "FIFO", "NORMAL", "TRANSACTION", "UNSPECIFIED")),
        "queue.type": _Attribute(("SimpleCQ",), is_changeable=False),
        "cleanup.policy": _Attribute(("DELETE",), is_changeable=False),
        "reserve.time": _Attribute(("-1",)),
    }
)


def changed_attributes(current: Mapping[str, str], changes: str, *, is_new: bool) -> dict[str, str]:
    """Returns a topic's attributes after the changes. `is_new` is True for a new topic. Raises IllegalAttributes."""
    attributes = dict(current)
    seen: set[str] = set()
    for change in filter(None, changes.split(",")):
        sign, (name, has_value, value) = change[0], change[1:].partition("=")
        if sign not in "+-" or bool(has_value) != (sign == "+"):
            raise IllegalAttributes(f"{change}: use +NAME=VALUE to set an attribute, -NAME to remove it")
        if name in seen:
            raise IllegalAttributes(f"{name}: attribute changed more than once")
        seen.add(name)
        if sign == "+":
            _check_value(name, value)
        if attributes.get(name) == value:
            continue
        _check_changeable(name, is_new=is_new)
        if sign == "+":
            attributes[name] = value
        elif attributes.pop(name, None) is None:
            raise IllegalAttributes(f"{name}: attribute cannot be removed, because the topic does not have it")
    return attributes


def _check_value(name: str, value: str) -> None:
    values = _attribute(name).values
    if value not in values:
        raise IllegalAttributes(f"{name}={value}: value not supported; supported values: {', '.join(values)}")


def _check_changeable(name: str, *, is_new: bool) -> None:
    if not is_new and not _attribute(name).is_changeable:
        raise IllegalAttributes(f"{name}: attribute can only be set when the topic is created")


def _attribute(name: str) -> _Attribute:
    attribute = _ATTRIBUTES.get(name)
    if attribute is None:
        raise IllegalAttributes(f"{name}: unknown attribute; known attributes: {', '.join(sorted(_ATTRIBUTES))}")
    return attribute
