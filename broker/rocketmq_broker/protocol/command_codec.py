"""The bytes of a command: its header in JSON or in binary, and the lengths before it. Pure functions on every message's path.

The layouts stand in `rocketmq_broker.protocol.command`. This module has no structs of its own: a compiled build compiles it.
"""

from __future__ import annotations

from typing import Final

import msgspec
from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be

from rocketmq_broker.protocol.errors import FrameError

_BINARY: Final = 1
_UNTIL_REMARK: Final = 17
"""Bytes of a binary header before its remark: CODE to REMARKLENGTH."""


def json_header(code: int, fields: bytes, flag: int, language: bytes, opaque: int, remark: str | None, version: int) -> bytes:
    """Encodes a header in JSON; `fields` and `language` are JSON already. The members have fastjson's order."""
    return b'{"code":%d,%b"flag":%d,"language":%b,"opaque":%d,%b"serializeTypeCurrentRPC":"JSON","version":%d}' % (
        code,
        b'"extFields":%b,' % fields if fields else b"",
        flag,
        language,
        opaque,
        b'"remark":%b,' % msgspec.json.encode(remark) if remark is not None else b"",
        version,
    )


def json_frame(header: bytes, body: bytes) -> bytes:
    """Encodes the whole frame of a command with a header in JSON."""
    return json_head(header, len(body)) + body


def json_head(header: bytes, body_length: int) -> bytes:
    """Encodes the frame of a command with a header in JSON up to its body, which will have so many bytes."""
    return b"".join(((4 + len(header) + body_length).to_bytes(4, "big"), len(header).to_bytes(4, "big"), header))


def binary_frame(
    code: int, fields: bytes, flag: int, language: int, opaque: int, remark: str | None, version: int, body: bytes
) -> bytes:
    """Encodes the whole frame of a command with a header in binary; `fields` are extension fields in binary."""
    head = binary_head(code, fields, flag, language, opaque, remark, version, len(body))
    return head + body if body else head  # a writer would copy a long body twice


def binary_head(
    code: int, fields: bytes, flag: int, language: int, opaque: int, remark: str | None, version: int, body_length: int
) -> bytes:
    """Encodes the frame of a command with a header in binary up to its body, which will have so many bytes."""
    text = remark.encode() if remark else b""
    header_length = _UNTIL_REMARK + len(text) + 4 + len(fields)
    writer = BytesWriter()
    write_i32_be(writer, 4 + header_length + body_length)
    write_i32_be(writer, _BINARY << 24 | header_length)
    write_i16_be(writer, code)
    writer.append(language & 0xFF)
    write_i16_be(writer, version)
    write_i32_be(writer, opaque)
    write_i32_be(writer, flag)
    write_i32_be(writer, len(text))
    writer.write(text)
    write_i32_be(writer, len(fields))
    writer.write(fields)
    return writer.getvalue()


def split_binary_header(data: bytes, start: int, end: int) -> tuple[int, int, int, int, int, str | None, bytes]:
    """Splits the header `data[start:end]` into code, language, version, opaque, flag, remark and fields.

    Raises FrameError for wrong lengths.
    """
    remark_start = start + _UNTIL_REMARK
    if remark_start + 4 > end:
        raise FrameError(f"a binary header that is torn: it has {end - start} bytes, and {_UNTIL_REMARK + 4} are the least")
    language = data[start + 2]
    remark_length: int = read_i32_be(data, start + 13)
    fields_start = remark_start + remark_length + 4
    if remark_length < 0 or fields_start > end:
        raise FrameError(f"a binary header that is torn: it has {end - start} bytes, and {remark_length} of them are its remark")
    fields_length: int = read_i32_be(data, fields_start - 4)
    if fields_start + fields_length != end:
        raise FrameError(
            f"a binary header of {end - start} bytes with {remark_length} bytes of remark and {fields_length} of extension fields"
        )
    try:
        remark = data[remark_start : fields_start - 4].decode() if remark_length else None
    except UnicodeDecodeError as error:
        raise FrameError(f"a binary header that is torn: {error}") from None
    return (
        read_i16_be(data, start),
        language if language < 0x80 else language - 0x100,
        read_i16_be(data, start + 3),
        read_i32_be(data, start + 5),
        read_i32_be(data, start + 9),
        remark,
        data[fields_start:end],
    )
