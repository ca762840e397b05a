"""Extension fields: the typed header of a command, as a JSON object of strings or in RocketMQ's binary form.

In binary, entries follow one another; a field that is null has none (RocketMQSerializable.mapSerialize):

    KEYLENGTH 2 | key | VALUELENGTH 4 | value

Big-endian lengths in bytes; keys and values are UTF-8.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import msgspec
from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i32_be

from rocketmq_broker.protocol.errors import UNREADABLE_JSON, HeaderError


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
    writer = BytesWriter()
    for name, value in fields.items():
        write_field(writer, encode_key(name), value.encode())
    return writer.getvalue()


def write_field(writer: BytesWriter, key: bytes, value: bytes) -> None:
    """Writes one field in binary; `key` is its name from `encode_key`."""
    writer.write(key)
    write_i32_be(writer, len(value))
    writer.write(value)


@functools.lru_cache(maxsize=1024)
def encode_key(name: str) -> bytes:
    """Encodes a field's name in binary, its length before it. Cached: there are some hundred names."""
    key = name.encode()
    return len(key).to_bytes(2, "big") + key


def decode_binary(data: bytes) -> dict[str, str]:
    """Decodes the fields of a binary header; one with an empty value counts as absent, as in RocketMQ.

    Raises HeaderError where the lengths do not add up or a text is no UTF-8.
    """
    fields: dict[str, str] = {}
    text = data.decode("latin-1")  # one character a byte: right for keys and nearly all values, and cheap to slice
    position = 0
    end = len(data)
    try:
        while position < end:
            # The lengths have no sign; the functions read numbers with one.
            key_length: int = read_i16_be(data, position)
            key_end = position + 2 + (key_length & 0xFFFF)
            value_length: int = read_i32_be(data, key_end)
            value_start = key_end + 4
            value_end = value_start + (value_length & 0xFFFFFFFF)
            if value_end > value_start:
                value = text[value_start:value_end]
                fields[text[position + 2 : key_end]] = value if value.isascii() else data[value_start:value_end].decode()
            position = value_end
    except (IndexError, UnicodeDecodeError) as error:
        raise HeaderError("extFields", f"the extension fields of a binary header are torn: {error}") from None
    if position != end:
        raise HeaderError("extFields", f"the extension fields have {end} bytes; their lengths add up to {position}")
    return fields


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
