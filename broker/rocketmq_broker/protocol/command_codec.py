"""The bytes of a command: its header in JSON or in binary, and the lengths before it. Pure functions on every message's path.

The layouts stand in `rocketmq_broker.protocol.command`. This module has no structs of its own: a compiled build compiles it.
"""

from __future__ import annotations

import struct

import msgspec

from rocketmq_broker.protocol.errors import FrameError

_LENGTH_AND_HEADER_LENGTH = struct.Struct(">II")
_BINARY_UNTIL_REMARK = struct.Struct(">hbhiii")
_INT32 = struct.Struct(">i")


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


def binary_header(code: int, fields: bytes, flag: int, language: int, opaque: int, remark: str | None, version: int) -> bytes:
    """Encodes a header in binary; `fields` are extension fields in binary."""
    text = remark.encode() if remark else b""
    return b"".join(
        (
            _BINARY_UNTIL_REMARK.pack(code, language, version, opaque, flag, len(text)),
            text,
            _INT32.pack(len(fields)),
            fields,
        )
    )


def frame(serialize_type: int, header: bytes, body: bytes) -> bytes:
    """Encodes the whole frame."""
    header_length = len(header)
    lengths = _LENGTH_AND_HEADER_LENGTH.pack(4 + header_length + len(body), serialize_type << 24 | header_length)
    return b"".join((lengths, header, body))


def split_binary_header(header: bytes) -> tuple[int, int, int, int, int, str | None, bytes]:
    """Splits a header into code, language, version, opaque, flag, remark and fields. Raises FrameError for wrong lengths."""
    try:
        code, language, version, opaque, flag, remark_length = _BINARY_UNTIL_REMARK.unpack_from(header)
        remark_end = _BINARY_UNTIL_REMARK.size + remark_length
        (fields_length,) = _INT32.unpack_from(header, remark_end)
        remark = header[_BINARY_UNTIL_REMARK.size : remark_end].decode() if remark_length else None
    except (struct.error, UnicodeDecodeError) as error:
        raise FrameError(f"a binary header that is torn: {error}") from None
    fields_start = remark_end + _INT32.size
    if remark_length < 0 or fields_start + fields_length != len(header):
        raise FrameError(
            f"a binary header of {len(header)} bytes with {remark_length} bytes of remark and {fields_length} of extension fields"
        )
    return code, language, version, opaque, flag, remark, header[fields_start:]
