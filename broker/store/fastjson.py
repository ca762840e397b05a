"""The JSON that Apache's library fastjson writes into config files: tab-indented, and numbers as keys without quotes.

{
    "offsetTable":{
            "TopicTest@a_group":{0:250,1:250
            }
    }
}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from broker.message.errors import UnreadableJson
from broker.message.fastjson import standard_json


def encode(value: Any) -> bytes:
    """The value as fastjson's pretty format writes it. Keys keep their order; a mapping has keys of one kind, str or int."""
    return _text(value, 0).encode()


def encode_member(key: str, value: Any, depth: int) -> str:
    """One member of an object at that depth, 0 being the outermost, as it stands in what `encode` makes."""
    return "\n" + "\t" * (depth + 1) + msgspec.json.encode(key).decode() + ":" + _text(value, depth + 1)


def encode_object(members: Sequence[str], depth: int) -> str:
    """An object at that depth of members that `encode_member` made: large tables need not be encoded whole for each change."""
    return "{" + ",".join(members) + "\n" + "\t" * depth + "}" if members else "{}"


def decode(data: bytes) -> Any:
    """Reads strict JSON and fastjson's; keys come as str. Raises ValueError."""
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
    line = "\n" + "\t" * (depth + 1)
    # fastjson breaks the line before a key that is a string, and not before one that is a number.
    parts = [
        (line if isinstance(key, str) else "") + msgspec.json.encode(key).decode() + ":" + _text(member, depth + 1)
        for key, member in members.items()
    ]
    return "{" + ",".join(parts) + "\n" + "\t" * depth + "}"
