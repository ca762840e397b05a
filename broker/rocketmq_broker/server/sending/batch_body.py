"""Decodes the body of SEND_BATCH_MESSAGE, which consists of encoded messages (RocketMQ's MessageDecoder.encodeMessages).

    TOTALSIZE 4 | MAGICCODE 4 | BODYCRC 4 | FLAG 4 | BODYLENGTH 4 | body | PROPERTIESLENGTH 2 | properties

Numbers are big-endian. Clients set magic code and checksum to 0.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from rocketmq_broker.message.errors import IllegalMessage

_UNTIL_BODY = struct.Struct(">iiiii")
_LENGTH = struct.Struct(">h")


class BatchedMessage(NamedTuple):
    """One message of a batch: its flag, body and properties."""

    flag: int
    body: bytes
    properties: bytes


def split_batch(data: bytes) -> Iterator[BatchedMessage]:
    """Yields the messages of a batch. Raises IllegalMessage if the batch is empty or its lengths are inconsistent."""
    if not data:
        raise IllegalMessage("the batch contains no messages")
    position = 0
    try:
        while position < len(data):
            size, _, _, flag, body_length = _UNTIL_BODY.unpack_from(data, position)
            body_start = position + _UNTIL_BODY.size
            body_end = body_start + body_length
            (properties_length,) = _LENGTH.unpack_from(data, body_end)
            properties_start = body_end + _LENGTH.size
            end = properties_start + properties_length
            if body_length < 0 or properties_length < 0 or end - position != size or end > len(data):
                raise IllegalMessage(f"malformed batch: lengths do not match at byte {position}")
            yield BatchedMessage(flag, data[body_start:body_end], data[properties_start:end])
            position = end
    except struct.error:
        raise IllegalMessage(f"malformed batch: lengths do not match at byte {position}") from None
