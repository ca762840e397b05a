"""Encodes and decodes the frames of commands, with headers in JSON or binary.

`rocketmq_broker.protocol.command` documents the layouts. These functions run for every message. The module defines no msgspec
structs, because mypyc cannot compile them.
"""

from typing import Final

import msgspec
from librt.strings import BytesWriter, read_i16_be, read_i32_be, write_i16_be, write_i32_be

from rocketmq_broker.protocol.codes import CURRENT_VERSION, LanguageCode, SerializeType
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.errors import FrameError

_BINARY: Final = 1
_LANGUAGE: Final = LanguageCode.PYTHON
_LANGUAGE_JSON: Final = b'"PYTHON"'
_UNTIL_REMARK: Final = 17
"""The number of bytes before the remark in a binary header: CODE to REMARKLENGTH."""


def encode_frame(
    serialize_type: SerializeType,
    code: int,
    header: CommandHeader | None,
    flag: int,
    opaque: int,
    remark: str | None,
    body: bytes,
) -> bytes:
    """Encodes the whole frame of a command of this program."""
    head = encode_head(serialize_type, code, header, flag, opaque, remark, len(body))
    return head + body if body else head


def encode_head(
    serialize_type: SerializeType,
    code: int,
    header: CommandHeader | None,
    flag: int,
    opaque: int,
    remark: str | None,
    body_length: int,
) -> bytes:
    """Encodes the start of a frame: its lengths and the header. The body of `body_length` bytes must follow."""
    if serialize_type is SerializeType.JSON:
        fields = header.encode_json() if header is not None else b""
        return json_head(json_header(code, fields, flag, _LANGUAGE_JSON, opaque, remark, CURRENT_VERSION), body_length)
    fields = header.encode_binary() if header is not None else b""
    return binary_head(code, fields, flag, _LANGUAGE, opaque, remark, CURRENT_VERSION, body_length)


def json_header(code: int, fields: bytes, flag: int, language: bytes, opaque: int, remark: str | None, version: int) -> bytes:
    """Encodes a header in JSON, with fastjson's order of members. `fields` and `language` are already encoded in JSON."""
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
    """Encodes the start of a frame: its lengths and a header in JSON. The body of `body_length` bytes must follow."""
    writer = BytesWriter()
    write_i32_be(writer, 4 + len(header) + body_length)
    write_i32_be(writer, len(header))
    writer.write(header)
    return writer.getvalue()


def binary_frame(
    code: int, fields: bytes, flag: int, language: int, opaque: int, remark: str | None, version: int, body: bytes
) -> bytes:
    """Encodes the whole frame of a command with a binary header. `fields` are binary extension fields."""
    head = binary_head(code, fields, flag, language, opaque, remark, version, len(body))
    return head + body if body else head  # a writer would copy a long body twice


def binary_head(
    code: int, fields: bytes, flag: int, language: int, opaque: int, remark: str | None, version: int, body_length: int
) -> bytes:
    """Encodes the start of a frame: its lengths and a binary header. The body of `body_length` bytes must follow."""
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
    """Splits the binary header `data[start:end]` into code, language, version, opaque, flag, remark and fields.

    Raises FrameError for invalid lengths, or a remark that is not UTF-8.
    """
    remark_start = start + _UNTIL_REMARK
    if remark_start + 4 > end:
        raise FrameError(f"binary header must have at least {_UNTIL_REMARK + 4} bytes, not {end - start}")
    language = data[start + 2]
    remark_length: int = read_i32_be(data, start + 13)
    fields_start = remark_start + remark_length + 4
    if remark_length < 0 or fields_start > end:
        raise FrameError(f"invalid remark length in a binary header of {end - start} bytes: {remark_length}")
    fields_length: int = read_i32_be(data, fields_start - 4)
    if fields_start + fields_length != end:
        raise FrameError(
            f"invalid lengths in a binary header of {end - start} bytes: remark {remark_length}, extension fields {fields_length}"
        )
    try:
        remark = data[remark_start : fields_start - 4].decode() if remark_length else None
    except UnicodeDecodeError as error:
        raise FrameError(f"remark of a binary header is not UTF-8: {error}") from None
    return (
        read_i16_be(data, start),
        language if language < 0x80 else language - 0x100,
        read_i16_be(data, start + 3),
        read_i32_be(data, start + 5),
        read_i32_be(data, start + 9),
        remark,
        data[fields_start:end],
    )
