"""The typed headers of commands (RocketMQ's CommandCustomHeader)."""

import functools
import re
from collections.abc import Callable
from typing import Self, TypeVar

import msgspec

from rocketmq_broker.protocol import ext_fields
from rocketmq_broker.protocol.errors import UNREADABLE_JSON, HeaderError

_MISSING = re.compile(r"missing required field `(?P<field>[^`]+)`")
_AT = re.compile(r" - at `\$\.(?P<field>[^`.\[]+)")


class CommandHeader(msgspec.Struct, rename="camel", gc=False):
    """Base class of the typed headers. On the wire every value is a string, and fields that are None are omitted."""

    def ext_fields(self) -> dict[str, str]:
        """Returns the fields keyed by their names on the wire, except fields that are None."""
        fields = {}
        for name, wire_name in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            value = getattr(self, name)
            if value is None:
                continue
            if value is True:
                value = "true"
            elif value is False:
                value = "false"
            fields[wire_name] = str(value)
        return fields

    def encode_json(self) -> bytes:
        """Encodes the fields as a JSON object of strings. Returns empty bytes if there are no fields."""
        return ext_fields.encode_json(self.ext_fields())

    def encode_binary(self) -> bytes:
        """Encodes the fields in the format of the ROCKETMQ serializer."""
        return ext_fields.encode_binary(self.ext_fields())

    @classmethod
    def from_ext_fields(cls, fields: dict[str, str]) -> Self:
        """Returns the header with these fields. Raises HeaderError with the missing or invalid field."""
        try:
            return msgspec.convert(fields, cls, strict=False)
        except msgspec.ValidationError as error:
            raise header_error(error) from None


Header = TypeVar("Header", bound=CommandHeader)


@functools.cache
def _json_decoder(header_type: type[Header]) -> Callable[[msgspec.Raw | bytes], Header]:
    return msgspec.json.Decoder(header_type, strict=False).decode


def decode_json_header(header_type: type[Header], data: msgspec.Raw | bytes) -> Header:
    """Decodes a header from a JSON object of strings, numbers and booleans. Raises HeaderError."""
    try:
        header: Header = _json_decoder(header_type)(data)
        return header
    except UNREADABLE_JSON:
        return header_type.from_ext_fields(ext_fields.decode_json(data))


def header_error(error: msgspec.ValidationError) -> HeaderError:
    """Converts msgspec's error to a HeaderError, with RocketMQ's error message for a missing field."""
    text = str(error)
    if missing := _MISSING.search(text):
        field = missing["field"]
        return HeaderError(field, f"the custom field <{field}> is null")
    at = _AT.search(text)
    field = at["field"] if at else "extFields"
    reason = "it must be an integer" if "`float` " in text else text.partition(" - at")[0].replace("int | float", "int")
    return HeaderError(field, f"the custom field <{field}> is illegal: {reason}")
