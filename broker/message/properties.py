"""Message properties: their names, and the one string that carries them (RocketMQ's MessageConst and MessageDecoder).

    name \\x01 value \\x02 name \\x01 value

The broker passes properties on as they came, so what it needs is done on the bytes: `find`, `put` and `remove` touch one
property and leave the others as they are. `encode` and `decode` are for those who want them all.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from broker.message.errors import IllegalMessage
from broker.message.mistakes import kind_of

KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
WAIT_STORE_MSG_OK: Final = "WAIT"
DELAY_TIME_LEVEL: Final = "DELAY"
RETRY_TOPIC: Final = "RETRY_TOPIC"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE_ID: Final = "REAL_QID"
TRANSACTION_PREPARED: Final = "TRAN_MSG"
PRODUCER_GROUP: Final = "PGROUP"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MSG_REGION: Final = "MSG_REGION"
TRACE_SWITCH: Final = "TRACE_ON"
UNIQUE_KEY: Final = "UNIQ_KEY"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
CONSUME_START_TIME: Final = "CONSUME_START_TIME"
TRANSACTION_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_TIME_IN_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
INSTANCE_ID: Final = "INSTANCE_ID"
CLUSTER: Final = "CLUSTER"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"

KEY_SEPARATOR: Final = " "
MAX_PROPERTIES_LENGTH: Final = 32767
"""Bytes of the encoded properties; their length is a signed 16-bit number on the wire and on disk."""

_NAME_VALUE = "\x01"
_PROPERTY = "\x02"


def encode(properties: Mapping[str, str]) -> bytes:
    """The properties as one string, UTF-8.

    Raises IllegalMessage if a name is empty, if a name or value is no str, or if it holds a separator or half a surrogate pair.
    """
    try:
        return _PROPERTY.join([_pair(name, value) for name, value in properties.items()]).encode()
    except (TypeError, UnicodeEncodeError):
        raise IllegalMessage(_why_not_text(properties)) from None


def decode(encoded: bytes) -> dict[str, str]:
    """All properties. As in RocketMQ, a pair without name or value is passed over."""
    properties: dict[str, str] = {}
    for pair in encoded.decode(errors="replace").split(_PROPERTY):
        name, separator, value = pair.partition(_NAME_VALUE)
        if name and separator and value:
            properties[name] = value
    return properties


def find(encoded: bytes, name: str) -> str | None:
    """The value of one property, or None."""
    span = _span(encoded, name.encode())
    if span is None:
        return None
    start, end = span
    return encoded[start + len(name.encode()) + 1 : end].decode(errors="replace")


def put(encoded: bytes, name: str, value: str) -> bytes:
    """The properties with one of them set, in place where it was there already."""
    pair = _pair(name, value).encode()
    span = _span(encoded, name.encode())
    if span is not None:
        start, end = span
        return encoded[:start] + pair + encoded[end:]
    if not encoded or encoded.endswith(b"\x02"):
        return encoded + pair
    return encoded + b"\x02" + pair


def remove(encoded: bytes, names: Iterable[str]) -> bytes:
    """The properties without those named."""
    for name in names:
        span = _span(encoded, name.encode())
        if span is not None:
            start, end = span
            encoded = encoded[:start].removesuffix(b"\x02") + encoded[end:]
            encoded = encoded.removeprefix(b"\x02") if start == 0 else encoded
    return encoded


def _why_not_text(properties: Mapping[str, object]) -> str:
    for name, value in properties.items():
        for part, what in ((name, f"the name of property {name!r}"), (value, f"property {name!r}")):
            if not isinstance(part, str):
                return f"{what} is {kind_of(part)}; a str is expected"
    return "a property holds a character that UTF-8 cannot encode (half a surrogate pair)"


def _pair(name: str, value: str) -> str:
    if not name or _NAME_VALUE in name or _PROPERTY in name or _NAME_VALUE in value or _PROPERTY in value:
        raise IllegalMessage(f"property {name!r}: neither name nor value may hold \\x01 or \\x02, and a name may not be empty")
    return name + _NAME_VALUE + value


def _span(encoded: bytes, name: bytes) -> tuple[int, int] | None:
    """Where the pair of that name begins and ends."""
    pattern = name + b"\x01"
    if encoded.startswith(pattern):
        start = 0
    else:
        start = encoded.find(b"\x02" + pattern) + 1
        if start == 0:
            return None
    end = encoded.find(b"\x02", start)
    return start, len(encoded) if end < 0 else end
