"""Extension fields: the typed header of a command, as a JSON object of strings or in RocketMQ's binary form.

In binary, entries follow one another; a field that is null has none (RocketMQSerializable.mapSerialize):

    KEYLENGTH 2 | key | VALUELENGTH 4 | value

Big-endian lengths in bytes; keys and values are UTF-8.
"""

import functools
import struct
from collections.abc import Mapping

import msgspec

from rocketmq_broker.protocol.errors import UNREADABLE_JSON, HeaderError

_KEY_LENGTH = struct.Struct(">H")
_VALUE_LENGTH = struct.Struct(">I")
_read_key_length = _KEY_LENGTH.unpack_from
_read_value_length = _VALUE_LENGTH.unpack_from


def encode_json(fields: Mapping[str, str]) -> bytes:
    """Encodes the fields as a JSON object; empty bytes where there are none."""
    return msgspec.json.encode(fields) if fields else b""


def decode_json(data: bytes | msgspec.Raw) -> dict[str, str]:
    """Decodes the fields of a JSON object. Numbers and booleans become strings, nulls are skipped.

    Raises HeaderError for other data.
    """
    try:
        values = msgspec.json.decode(data, type=dict[str, str | int | float | bool | None] | None) or {}
    except UNREADABLE_JSON as error:
        raise HeaderError("extFields", f"the extFields of a header are no JSON object of strings: {error}") from None
    return {name: _text(value) for name, value in values.items() if value is not None}


def encode_binary(fields: Mapping[str, str]) -> bytes:
    """Encodes the fields in binary."""
    parts: list[bytes] = []
    for name, value in fields.items():
        text = value.encode()
        parts += (encode_key(name), _VALUE_LENGTH.pack(len(text)), text)
    return b"".join(parts)


@functools.lru_cache(maxsize=1024)
def encode_key(name: str) -> bytes:
    """Encodes a field's name in binary, its length before it. Cached: there are some hundred names."""
    key = name.encode()
    return _KEY_LENGTH.pack(len(key)) + key


def decode_binary(data: bytes) -> dict[str, str]:
    """Decodes the fields of a binary header; one with an empty value counts as absent, as in RocketMQ.

    Raises HeaderError where the lengths do not add up or a text is no UTF-8.
    """
    fields: dict[str, str] = {}
    text = data.decode("latin-1")  # one character a byte: right for keys and nearly all values, and cheap to slice
    position, end = 0, len(data)
    try:
        while position < end:
            (key_length,) = _read_key_length(data, position)
            key_end = position + 2 + key_length
            (value_length,) = _read_value_length(data, key_end)
            value_start = key_end + 4
            value_end = value_start + value_length
            if value_length:
                value = text[value_start:value_end]
                fields[text[position + 2 : key_end]] = value if value.isascii() else data[value_start:value_end].decode()
            position = value_end
    except (struct.error, UnicodeDecodeError) as error:
        raise HeaderError("extFields", f"the extension fields of a binary header are torn: {error}") from None
    if position != end:
        raise HeaderError("extFields", f"the extension fields have {end} bytes; their lengths add up to {position}")
    return fields


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
