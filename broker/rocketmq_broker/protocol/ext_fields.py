"""Encodes and decodes extension fields as a JSON object of strings or in RocketMQ's binary form.

The binary form is a sequence of entries without null fields (RocketMQSerializable.mapSerialize):

    KEYLENGTH 2 | key | VALUELENGTH 4 | value

Lengths are big-endian, in bytes. Keys and values are UTF-8.
"""

import functools
from collections.abc import Mapping

import msgspec
from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i32_be

from rocketmq_broker.protocol.errors import UNREADABLE_JSON, HeaderError


def encode_json(fields: Mapping[str, str]) -> bytes:
    """Encodes the fields as a JSON object. Returns empty bytes if there are no fields."""
    return msgspec.json.encode(fields) if fields else b""


def decode_json(data: bytes | msgspec.Raw) -> dict[str, str]:
    """Decodes the fields of a JSON object. Converts numbers and booleans to strings, and skips nulls.

    Raises HeaderError for other data.
    """
    try:
        values = msgspec.json.decode(data, type=dict[str, str | int | float | bool | None] | None) or {}
    except UNREADABLE_JSON as error:
        raise HeaderError("extFields", f"extFields of a header must be a JSON object of strings: {error}") from None
    return {name: _text(value) for name, value in values.items() if value is not None}


def encode_binary(fields: Mapping[str, str]) -> bytes:
    """Encodes the fields in the binary form."""
    writer = BytesWriter()
    for name, value in fields.items():
        write_field(writer, encode_key(name), value.encode())
    return writer.getvalue()


def write_field(writer: BytesWriter, key: bytes, value: bytes) -> None:
    """Writes one field in the binary form. `key` is its name, encoded by `encode_key`."""
    writer.write(key)
    write_i32_be(writer, len(value))
    writer.write(value)


@functools.lru_cache(maxsize=1024)
def encode_key(name: str) -> bytes:
    """Encodes a field's name with its length. The result is cached, because there are only a few hundred names."""
    key = name.encode()
    return len(key).to_bytes(2, "big") + key


def decode_binary(data: bytes) -> dict[str, str]:
    """Decodes the fields of a binary header. Skips fields with an empty value, as RocketMQ does.

    Raises HeaderError if a length is invalid, or if a key or value is not UTF-8.
    """
    fields: dict[str, str] = {}
    text = data.decode("latin-1")  # one character per byte, cheap to slice, and equal to UTF-8 for ASCII texts
    position = 0
    end = len(data)
    try:
        while position < end:
            # The lengths are unsigned, but these functions read signed numbers.
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
        raise HeaderError("extFields", f"extension fields of a binary header are malformed: {error}") from None
    if position != end:
        raise HeaderError("extFields", f"extension fields have {end} bytes, but the sum of their lengths is {position}")
    return fields


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
