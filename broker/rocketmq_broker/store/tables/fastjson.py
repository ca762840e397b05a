"""Encodes and decodes config files in fastjson's JSON format, which indents with tabs and does not quote numeric keys.

{
    "offsetTable":{
            "TopicTest@a_group":{0:250,1:250
            }
    }
}
"""

from typing import Any

import msgspec

from rocketmq_broker.message.errors import UnreadableJson
from rocketmq_broker.message.text.fastjson import standard_json


def encode(value: Any) -> bytes:
    """Encodes the value in fastjson's pretty format. Keys keep their order. The keys of a mapping are all str or all int."""
    return _text(value, 0).encode()


def decode(data: bytes) -> Any:
    """Decodes standard JSON and fastjson's format. Keys become str. Raises ValueError."""
    try:
        return msgspec.json.decode(standard_json(data))
    except UnreadableJson as error:
        raise ValueError(str(error)) from None


def _text(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        return _object(value, depth)
    return msgspec.json.encode(value).decode()


def _object(members: dict[Any, Any], depth: int) -> str:
    if not members:
        return "{}"
    return joined([member(key, value, depth) for key, value in members.items()], depth)


def member(key: Any, value: Any, depth: int) -> str:
    """Encodes one member of an object at nesting depth `depth`, for `joined`."""
    # fastjson breaks the line before a string key, but not before a number.
    line = "\n" + "\t" * (depth + 1) if isinstance(key, str) else ""
    return line + msgspec.json.encode(key).decode() + ":" + _text(value, depth + 1)


def joined(members: list[str], depth: int) -> str:
    """Encodes an object from its encoded members. A caller can cache the encoded members that do not change."""
    return "{" + ",".join(members) + "\n" + "\t" * depth + "}" if members else "{}"
