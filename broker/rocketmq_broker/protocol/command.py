"""The remoting command, which is a request or a response (RocketMQ's RemotingCommand), and its frame.

    LENGTH 4 | SERIALIZETYPE 1 | HEADERLENGTH 3 | header | body

LENGTH is the number of bytes after it. With serialize type 0 the header is a JSON object. With type 1 it is binary
(RocketMQSerializable):

    CODE 2 | LANGUAGE 1 | VERSION 2 | OPAQUE 4 | FLAG 4 | REMARKLENGTH 4 | remark | EXTLENGTH 4 | extension fields

All numbers are big-endian and signed. The extension fields are decoded by `decode_header`, which needs their type.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32
from rocketmq_broker.protocol import ext_fields
from rocketmq_broker.protocol.codes import LanguageCode, SerializeType
from rocketmq_broker.protocol.command_codec import (
    binary_frame,
    encode_frame,
    encode_head,
    json_frame,
    json_header,
    split_binary_header,
)
from rocketmq_broker.protocol.command_header import CommandHeader, Header, decode_json_header
from rocketmq_broker.protocol.errors import UNREADABLE_JSON, FrameError

RESPONSE_FLAG: Final = 1
ONEWAY_FLAG: Final = 2

_JSON = SerializeType.JSON


class Answerable(Protocol):
    """The interface of a request whose response can be encoded. RemotingCommand and ReplyTo implement it."""

    @property
    def opaque(self) -> int:
        """Returns the number that matches the response to its request."""

    @property
    def serialize_type(self) -> SerializeType:
        """Returns the request's serializer."""


class ReplyTo(NamedTuple):
    """The two values of a request that are required to encode its response."""

    opaque: int
    serialize_type: SerializeType


class RemotingCommand(msgspec.Struct, gc=False, kw_only=True):
    """One request or response. Its extension fields are decoded on demand."""

    code: Int32
    """A RequestCode in a request, or a ResponseCode in a response. Unknown codes are kept unchanged."""
    opaque: Int32
    flag: Int32 = 0
    remark: str | None = None
    language: str | int = "JAVA"
    """The language as the peer sent it. `language_code` decodes it."""
    version: Int32 = 0
    json_fields: msgspec.Raw = msgspec.field(name="extFields", default=msgspec.Raw())
    # The following fields are not part of a JSON header. `decode_command` overwrites members with these names.
    binary_fields: bytes = msgspec.field(name="(binary)", default=b"")
    serialize_type: SerializeType = msgspec.field(name="(type)", default=_JSON)
    body: bytes = msgspec.field(name="(body)", default=b"")
    decoded: object = msgspec.field(name="(decoded)", default=None)
    """The typed header, cached by the first call of `decode_header`. None before that call."""

    @property
    def is_response(self) -> bool:
        """Returns True if the command is a response."""
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """Returns True if the request expects no response."""
        return self.flag & ONEWAY_FLAG != 0

    @property
    def language_code(self) -> LanguageCode:
        """Returns the peer's language, or OTHER if it is unknown."""
        try:
            return LanguageCode(self.language) if isinstance(self.language, int) else LanguageCode[self.language]
        except (KeyError, ValueError):
            return LanguageCode.OTHER

    def decode_header(self, header_type: type[Header]) -> Header:
        """Decodes the extension fields as a typed header. Raises HeaderError with the missing or invalid field.

        The header is cached, so that access control and the request's handler use the same object.
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
        """Returns all extension fields as strings, including unknown ones. Raises HeaderError if they are malformed."""
        if self.serialize_type is _JSON:
            return ext_fields.decode_json(self.json_fields or b"{}")
        return ext_fields.decode_binary(self.binary_fields)

    def encode(self) -> bytes:
        """Encodes the frame of this command. The bytes are identical to those that Apache's Java code writes."""
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
    """Encodes the whole frame of a request. Producers use `remark` to report an error of their transaction listener."""
    return encode_frame(serialize_type, code, header, ONEWAY_FLAG if oneway else 0, opaque, remark, body)


def encode_response(
    request: Answerable,
    code: int,
    header: CommandHeader | None = None,
    body: bytes = b"",
    remark: str | None = None,
) -> bytes:
    """Encodes the whole frame of a response with the request's serializer."""
    return encode_frame(request.serialize_type, code, header, RESPONSE_FLAG, request.opaque, remark, body)


def encode_response_in_parts(
    request: Answerable, code: int, header: CommandHeader, parts: Sequence[bytes], remark: str | None = None
) -> bytes:
    """Encodes a response like `encode_response`, from a body in several parts. Each part is copied only once."""
    length = sum(map(len, parts))
    head = encode_head(request.serialize_type, code, header, RESPONSE_FLAG, request.opaque, remark, length)
    return b"".join((head, *parts))


def decode_command(serialize_type: int, data: bytes, header_start: int, body_start: int, end: int) -> RemotingCommand:
    """Decodes the command with the header `data[header_start:body_start]` and the body `data[body_start:end]`.

    Raises FrameError if the header is malformed or its serializer is unknown.
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
            raise FrameError(f"header is not valid JSON for a command: {error}") from None
        command.body = data[body_start:end]
        command.serialize_type, command.binary_fields, command.decoded = _JSON, b"", None
        return command
    raise FrameError(f"serializer of a header must be 0 (JSON) or 1 (ROCKETMQ), not {serialize_type}")


_decode_json_command = msgspec.json.Decoder(RemotingCommand).decode
