"""The remoting command: one request or one response (RocketMQ's RemotingCommand), and its frame.

    LENGTH 4 | SERIALIZETYPE 1 | HEADERLENGTH 3 | header | body

LENGTH counts the bytes after it. With serialize type 0 the header is a JSON object, with 1 it is (RocketMQSerializable)

    CODE 2 | LANGUAGE 1 | VERSION 2 | OPAQUE 4 | FLAG 4 | REMARKLENGTH 4 | remark | EXTLENGTH 4 | extension fields

Big-endian, signed. The extension fields stay encoded until `decode_header` is called with their type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32
from rocketmq_broker.protocol import ext_fields
from rocketmq_broker.protocol.codes import CURRENT_VERSION, LanguageCode, SerializeType
from rocketmq_broker.protocol.command_codec import (
    binary_frame,
    binary_head,
    json_frame,
    json_head,
    json_header,
    split_binary_header,
)
from rocketmq_broker.protocol.command_header import CommandHeader, Header, decode_json_header
from rocketmq_broker.protocol.errors import UNREADABLE_JSON, FrameError

RESPONSE_FLAG: Final = 1
ONEWAY_FLAG: Final = 2

_JSON = SerializeType.JSON
_LANGUAGE = LanguageCode.PYTHON
_LANGUAGE_JSON = b'"PYTHON"'


class Answerable(Protocol):
    """The data of a request that its answer needs; a RemotingCommand and a ReplyTo have it."""

    @property
    def opaque(self) -> int:
        """Returns the number that leads the answer to its waiter."""

    @property
    def serialize_type(self) -> SerializeType:
        """Returns the peer's serializer."""


class ReplyTo(NamedTuple):
    """The two numbers of a request that must be kept until its answer."""

    opaque: int
    serialize_type: SerializeType


class RemotingCommand(msgspec.Struct, gc=False, kw_only=True):
    """One request or response. Its extension fields are decoded on demand."""

    code: Int32
    """A RequestCode, or in a response a ResponseCode; unknown codes are passed on unchanged."""
    opaque: Int32
    flag: Int32 = 0
    remark: str | None = None
    language: str | int = "JAVA"
    """The peer's own value; `language_code` decodes it."""
    version: Int32 = 0
    json_fields: msgspec.Raw = msgspec.field(name="extFields", default=msgspec.Raw())
    # The following are no part of a JSON header: members of these names in one are ignored.
    binary_fields: bytes = msgspec.field(name="(binary)", default=b"")
    serialize_type: SerializeType = msgspec.field(name="(type)", default=_JSON)
    body: bytes = msgspec.field(name="(body)", default=b"")
    decoded: object = msgspec.field(name="(decoded)", default=None)
    """The typed header, after its first use."""

    @property
    def is_response(self) -> bool:
        """Returns whether the command answers a request."""
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """Returns whether nobody waits for an answer."""
        return self.flag & ONEWAY_FLAG != 0

    @property
    def language_code(self) -> LanguageCode:
        """Returns the peer's language; OTHER if it has no code."""
        try:
            return LanguageCode(self.language) if isinstance(self.language, int) else LanguageCode[self.language]
        except (KeyError, ValueError):
            return LanguageCode.OTHER

    def decode_header(self, header_type: type[Header]) -> Header:
        """Decodes the extension fields as a typed header. Raises HeaderError that names the missing or illegal field.

        They are decoded once: the ACL checks the very object that the handler uses.
        """
        if type(self.decoded) is header_type:
            return self.decoded
        if self.serialize_type is _JSON:
            header = decode_json_header(header_type, self.json_fields or b"{}")
        else:
            header = header_type.from_ext_fields(ext_fields.decode_binary(self.binary_fields))
        self.decoded = header
        return header

    def ext_fields(self) -> dict[str, str]:
        """Returns all extension fields, known or not, as strings. Raises HeaderError if they are damaged."""
        if self.serialize_type is _JSON:
            return ext_fields.decode_json(self.json_fields or b"{}")
        return ext_fields.decode_binary(self.binary_fields)

    def encode(self) -> bytes:
        """Encodes the frame of exactly this command, as Apache's Java code writes it."""
        if self.serialize_type is _JSON:
            language = msgspec.json.encode(self.language)
            fields = bytes(self.json_fields)
            header = json_header(self.code, fields, self.flag, language, self.opaque, self.remark, self.version)
            return json_frame(header, self.body)
        code = self.language if isinstance(self.language, int) else self.language_code
        return binary_frame(self.code, self.binary_fields, self.flag, code, self.opaque, self.remark, self.version, self.body)


def encode_request(
    code: int,
    header: CommandHeader | None = None,
    body: bytes = b"",
    *,
    opaque: int,
    serialize_type: SerializeType = _JSON,
    oneway: bool = False,
    remark: str | None = None,
) -> bytes:
    """Encodes the whole frame of a request. A producer's `remark` says why its listener decided nothing."""
    return _encode(serialize_type, code, header, ONEWAY_FLAG if oneway else 0, opaque, remark, body)


def encode_response(
    request: Answerable,
    code: int,
    header: CommandHeader | None = None,
    body: bytes = b"",
    remark: str | None = None,
) -> bytes:
    """Encodes the whole frame of a response, in the request's serializer."""
    return _encode(request.serialize_type, code, header, RESPONSE_FLAG, request.opaque, remark, body)


def encode_response_in_parts(
    request: Answerable, code: int, header: CommandHeader, parts: Sequence[bytes], remark: str | None = None
) -> bytes:
    """Encodes a response like `encode_response`; its body is in parts, each of which is copied once."""
    length = sum(map(len, parts))
    head = _head(request.serialize_type, code, header, RESPONSE_FLAG, request.opaque, remark, length)
    return b"".join((head, *parts))


def encode_answer(
    serialize_type: SerializeType, opaque: int, code: int, header: CommandHeader | None, body: bytes, remark: str | None = None
) -> bytes:
    """Encodes a response like `encode_response`, from the two numbers of its request."""
    return _encode(serialize_type, code, header, RESPONSE_FLAG, opaque, remark, body)


def decode_command(serialize_type: int, data: bytes, header_start: int, body_start: int, end: int) -> RemotingCommand:
    """Decodes the command with the header `data[header_start:body_start]` and the body up to `end`.

    Raises FrameError if the header is torn or its serializer unknown.
    """
    if serialize_type == 1:
        code, language, version, opaque, flag, remark, fields = split_binary_header(data, header_start, body_start)
        return RemotingCommand(
            code=code,
            opaque=opaque,
            flag=flag,
            remark=remark,
            language=language,
            version=version,
            binary_fields=fields,
            serialize_type=SerializeType.ROCKETMQ,
            body=data[body_start:end],
        )
    if serialize_type == 0:
        try:
            command = _decode_json_command(data[header_start:body_start])
        except UNREADABLE_JSON as error:
            raise FrameError(f"a header that is no JSON header of a command: {error}") from None
        command.body = data[body_start:end]
        command.serialize_type, command.binary_fields, command.decoded = _JSON, b"", None
        return command
    raise FrameError(f"a header written by serializer {serialize_type}; known are 0 (JSON) and 1 (ROCKETMQ)")


_decode_json_command = msgspec.json.Decoder(RemotingCommand).decode


def _encode(
    serialize_type: SerializeType,
    code: int,
    header: CommandHeader | None,
    flag: int,
    opaque: int,
    remark: str | None,
    body: bytes,
) -> bytes:
    head = _head(serialize_type, code, header, flag, opaque, remark, len(body))
    return head + body if body else head


def _head(
    serialize_type: SerializeType,
    code: int,
    header: CommandHeader | None,
    flag: int,
    opaque: int,
    remark: str | None,
    body_length: int,
) -> bytes:
    """Encodes the frame up to its body."""
    if serialize_type is _JSON:
        fields = header.encode_json() if header is not None else b""
        return json_head(json_header(code, fields, flag, _LANGUAGE_JSON, opaque, remark, CURRENT_VERSION), body_length)
    fields = header.encode_binary() if header is not None else b""
    return binary_head(code, fields, flag, _LANGUAGE, opaque, remark, CURRENT_VERSION, body_length)
