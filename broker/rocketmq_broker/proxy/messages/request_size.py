"""Limits encoded SendMessage requests, because decoding millions of short keys or messages would block the event loop."""

from typing import Final

from google.protobuf.message import DecodeError

from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.protos import definition_pb2 as api
from rocketmq_broker.proxy.protos import service_pb2 as service

MAX_MESSAGES: Final = 1024
MAX_FIELDS: Final = 8 * 1024
"""The maximum number of fields in all messages of a request, such as topics, bodies and user properties."""
MAX_BYTES_BESIDE_BODIES: Final = 1024 * 1024
_SMALL_REQUEST_BYTES: Final = 64 * 1024
"""The size in bytes up to which a request can be decoded within a few milliseconds, regardless of its content."""
_MESSAGES_FIELD: Final = service.SendMessageRequest.DESCRIPTOR.fields_by_name["messages"].number
_BODY_FIELD: Final = api.Message.DESCRIPTOR.fields_by_name["body"].number
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
"""Protobuf's wire types. The API does not use groups."""


def refuse_oversized_request(data: bytes) -> None:
    """Raises CallRefused if a SendMessage request contains too much data in addition to the message bodies.

    Raises DecodeError if the request is malformed.
    """
    if len(data) <= _SMALL_REQUEST_BYTES:
        return
    messages = fields = body_bytes = 0
    at, in_message_until = 0, 0
    while at < len(data):
        number, wire_type, begin, end = _field(data, at)
        fields += 1
        is_of_request, at = at >= in_message_until, end
        if is_of_request:
            if number == _MESSAGES_FIELD and wire_type == _LENGTH:
                messages += 1
                at, in_message_until = begin, end
        elif end > in_message_until:
            raise DecodeError("a field extends beyond its message")
        elif number == _BODY_FIELD and wire_type == _LENGTH:
            body_bytes += end - begin
        if messages > MAX_MESSAGES:
            raise CallRefused(api.MESSAGE_CORRUPTED, f"too many messages in a request: at most {MAX_MESSAGES}")
        if fields > MAX_FIELDS:
            reason = f"too many fields and user properties in a request: at most {MAX_FIELDS}"
            raise CallRefused(api.MESSAGE_PROPERTIES_TOO_LARGE, reason)
    beside_bytes = len(data) - body_bytes
    if beside_bytes > MAX_BYTES_BESIDE_BODIES:
        reason = f"properties too long in a request: {beside_bytes} bytes beside the bodies, at most {MAX_BYTES_BESIDE_BODIES}"
        raise CallRefused(api.MESSAGE_PROPERTIES_TOO_LARGE, reason)


def _field(data: bytes, at: int) -> tuple[int, int, int, int]:
    """Returns the number and wire type of a field, and the start and end of its content. Raises DecodeError."""
    key, begin = _varint(data, at)
    wire_type = key & 7
    if wire_type == _LENGTH:
        length, begin = _varint(data, begin)
        end = begin + length
    elif wire_type == _VARINT:
        end = _varint(data, begin)[1]
    elif wire_type in (_EIGHT_BYTES, _FOUR_BYTES):
        end = begin + (8 if wire_type == _EIGHT_BYTES else 4)
    else:
        raise DecodeError(f"unsupported wire type in a request: {wire_type}")
    if end > len(data):
        raise DecodeError("a field extends beyond its request")
    return key >> 3, wire_type, begin, end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    for byte in data[at : at + 10]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise DecodeError("varint too long or truncated in a request")
