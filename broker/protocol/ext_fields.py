"""Extension fields: the typed header of a command, as a JSON object of strings or in RocketMQ's binary form.

Binary, one entry after the other, nothing for a field that is null (RocketMQSerializable.mapSerialize):

    KEYLENGTH 2 | key | VALUELENGTH 4 | value

Big-endian lengths in bytes; keys and values are UTF-8.
"""

import struct
from collections.abc import Mapping

import msgspec

from broker.protocol.errors import HeaderError

_KEY_LENGTH = struct.Struct(">H")
_VALUE_LENGTH = struct.Struct(">I")


def encode_json(fields: Mapping[str, str]) -> bytes:
    """The fields as a JSON object; empty bytes where there are none."""
    return msgspec.json.encode(fields) if fields else b""


def decode_json(data: bytes | msgspec.Raw) -> dict[str, str]:
    """The fields of a JSON object. Numbers and booleans become the strings that stand for them, nulls are passed over.

    Raises HeaderError if the data is something else.
    """
    try:
        values = msgspec.json.decode(data, type=dict[str, str | int | float | bool | None] | None) or {}
    except msgspec.MsgspecError as error:
        raise HeaderError("extFields", f"the extFields of a header are no JSON object of strings: {error}") from None
    return {name: _text(value) for name, value in values.items() if value is not None}


def encode_binary(fields: Mapping[str, str]) -> bytes:
    """The fields in binary."""
    parts: list[bytes] = []
    for name, value in fields.items():
        key, text = name.encode(), value.encode()
        parts += (_KEY_LENGTH.pack(len(key)), key, _VALUE_LENGTH.pack(len(text)), text)
    return b"".join(parts)


def decode_binary(data: bytes) -> dict[str, str]:
    """The fields of a binary header; one with an empty value counts as absent, as in RocketMQ.

    Raises HeaderError where the lengths do not add up or a text is no UTF-8.
    """
    fields: dict[str, str] = {}
    position, end = 0, len(data)
    try:
        while position < end:
            key_start = position + 2
            key_end = key_start + (data[position] << 8 | data[position + 1])
            value_start = key_end + 4
            position = value_start + (data[key_end] << 24 | data[key_end + 1] << 16 | data[key_end + 2] << 8 | data[key_end + 3])
            if position > value_start:
                fields[data[key_start:key_end].decode()] = data[value_start:position].decode()
    except (IndexError, UnicodeDecodeError) as error:
        raise HeaderError("extFields", f"the extension fields of a binary header are torn: {error}") from None
    if position != end:
        raise HeaderError("extFields", f"the extension fields have {end} bytes; their lengths add up to {position}")
    return fields


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
