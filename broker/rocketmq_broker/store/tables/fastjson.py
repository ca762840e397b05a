"""The JSON of config files in the form of Apache's library fastjson: tab-indented, and numbers as keys without quotes.

{
    "offsetTable":{
            "TopicTest@a_group":{0:250,1:250
            }
    }
}
"""

from __future__ import annotations

from typing import Any

import msgspec

from rocketmq_broker.message.errors import UnreadableJson
from rocketmq_broker.message.text.fastjson import standard_json


def encode(value: Any) -> bytes:
    """Encodes the value in fastjson's pretty format. Keys keep their order; a mapping has keys of one kind, str or int."""
    return _text(value, 0).encode()


def decode(data: bytes) -> Any:
    """Decodes strict JSON and fastjson's; keys become str. Raises ValueError."""
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
    """Returns one member of an object at that depth, for `joined`."""
    # fastjson breaks the line before a key that is a string, and not before one that is a number.
    line = "\n" + "\t" * (depth + 1) if isinstance(key, str) else ""
    return line + msgspec.json.encode(key).decode() + ":" + _text(value, depth + 1)


def joined(members: list[str], depth: int) -> str:
    """Returns the object at that depth with these members: unchanged members of a large table need not be encoded again."""
    return "{" + ",".join(members) + "\n" + "\t" * depth + "}" if members else "{}"
