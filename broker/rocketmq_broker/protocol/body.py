"""The JSON body of a command (RocketMQ's RemotingSerializable)."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Final, Self, TypeVar

import msgspec

from rocketmq_broker.message.errors import UnreadableJson
from rocketmq_broker.message.text.fastjson import standard_json
from rocketmq_broker.protocol import queue_table
from rocketmq_broker.protocol.errors import UNREADABLE_JSON, BodyError

T = TypeVar("T")

_LENIENT_LIMIT: Final = 32 * 1024
"""The maximum length in bytes of a body that is decoded leniently.

Decoding a body of this length blocks the event loop for up to 45 ms.
"""


_NULL: Final = b":null"


class BodyPart(msgspec.Struct, rename="camel"):
    """Base class of the objects inside a body. Fields that are None are not encoded. A null is decoded as the field's default."""


class Body(BodyPart):
    """Base class of the JSON bodies of commands."""

    constants: ClassVar[Mapping[str, type[Enum]]] = {}
    """Maps the name of a field on the wire to the enum of its values.

    As in fastjson, an ordinal of the enum is accepted when a body is decoded.
    """
    lenient_limit: ClassVar[int | None] = _LENIENT_LIMIT
    """The maximum length in bytes of a body in non-standard JSON; None means no limit."""

    def encode(self) -> bytes:
        """Encodes the body. As in fastjson, fields that are None are omitted, because some clients fail on null."""
        encoded = queue_table.encode(self)
        return queue_table.encode(_without_nulls(self)) if _NULL in encoded else encoded

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decodes a body in standard JSON or in fastjson's format. Raises BodyError."""
        return decode_body(cls, data)


def decode_body(body_type: type[T], data: bytes) -> T:
    """Decodes a body of any type that msgspec supports. Raises BodyError."""
    try:
        return msgspec.json.decode(data, type=body_type, dec_hook=queue_table.decode_table)
    except UNREADABLE_JSON:
        return _decode_leniently(body_type, data)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        members = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        set_members = ((name, getattr(value, attribute)) for name, attribute in members)
        return _without_nulls({name: member for name, member in set_members if member is not msgspec.UNSET})
    if isinstance(value, queue_table.QueueTable):
        return queue_table.QueueTable({queue: _without_nulls(entry) for queue, entry in value.items()})
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    return [_without_nulls(entry) for entry in value] if isinstance(value, list) else value


def _decode_leniently(body_type: type[T], data: bytes) -> T:
    """Decodes a body with unquoted keys, quoted numbers, ordinals of constants, or null for missing values."""
    limit = getattr(body_type, "lenient_limit", _LENIENT_LIMIT)
    if limit is not None and len(data) > limit:
        name = body_type.__name__
        raise BodyError(f"{name} body is not standard JSON, and too long for other JSON: {len(data)} bytes, at most {limit}")
    constants = getattr(body_type, "constants", {})
    try:
        values = msgspec.json.decode(standard_json(data))
        body: T = queue_table.convert(_tidied(values, constants), body_type)
    except (UnreadableJson, *UNREADABLE_JSON) as error:
        raise BodyError(f"invalid {body_type.__name__} body: {error}") from None
    return body


def _tidied(value: Any, constants: Mapping[str, type[Enum]]) -> Any:
    if isinstance(value, dict):
        return {key: _member(key, entry, constants) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_tidied(entry, constants) for entry in value]
    return value


def _member(name: str, value: Any, constants: Mapping[str, type[Enum]]) -> Any:
    if name in constants and isinstance(value, int) and not isinstance(value, bool):
        known = list(constants[name])
        return known[value].value if 0 <= value < len(known) else value
    return _tidied(value, constants)
