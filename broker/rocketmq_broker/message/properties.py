"""Message properties: their names, and their encoding as one string (RocketMQ's MessageConst and MessageDecoder).

    name \\x01 value \\x02 name \\x01 value

The broker passes properties on unchanged, so it works on the encoded bytes: `find`, `put` and `remove` handle one property
and keep the others as they are. `encode` and `decode` handle all properties.

If a name occurs several times, the last pair with a value counts, as in RocketMQ. All functions here follow this rule, so that
brokers and consumers read the same value.

Constants have the names in RocketMQ's MessageConst without `PROPERTY_`: PROPERTY_REAL_TOPIC is REAL_TOPIC here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.message.text.mistakes import kind_of

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
FIRST_POP_TIME: Final = "1ST_POP_TIME"
MSG_REGION: Final = "MSG_REGION"
TRACE_SWITCH: Final = "TRACE_ON"
UNIQUE_KEY: Final = "UNIQ_KEY"  # PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
CONSUME_START_TIME: Final = "CONSUME_START_TIME"  # PROPERTY_CONSUME_START_TIMESTAMP
TRANSACTION_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_TIME_IN_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
INSTANCE_ID: Final = "INSTANCE_ID"
CLUSTER: Final = "CLUSTER"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"  # PROPERTY_MESSAGE_REPLY_TO_CLIENT
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
CORRELATION_ID: Final = "CORRELATION_ID"
MESSAGE_TTL: Final = "TTL"
MESSAGE_TYPE: Final = "MSG_TYPE"
REPLY: Final = "reply"
"""The value of MSG_TYPE for a message that replies to a request."""
INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"

KEY_SEPARATOR: Final = " "
MAX_PROPERTIES_LENGTH: Final = 32767
"""The maximum length of encoded properties in bytes. The length is a signed 16-bit number on the wire and on disk."""
MAX_SENT_PROPERTIES_LENGTH: Final = MAX_PROPERTIES_LENGTH - 2048
"""The maximum length of the encoded properties that a producer may send, in bytes.

The other 2,048 bytes of MAX_PROPERTIES_LENGTH are reserved for properties that brokers and consumers add later. These need at
most 1,500 bytes. They record the destination of a half or delayed message, its check-backs, the origin of a redelivered message,
and the attempt of a pop. RocketMQ does not reserve space for these properties. In RocketMQ, a message with properties of the
maximum length therefore cannot be sent back, and is redelivered endlessly.
"""

_NAME_VALUE = "\x01"
_PROPERTY = "\x02"
_NAME_END = b"\x01"
_MAX_REMEMBERED_LENGTH: Final = 64
_MAX_REMEMBERED: Final = 256
_patterns: Final[dict[str, bytes]] = {}
_PAIR_END = b"\x02"


def beginning(name: str) -> bytes:
    """Returns the first bytes of the property `name` in encoded form."""
    return name.encode() + _NAME_END


def encode(properties: Mapping[str, str]) -> bytes:
    """Encodes the properties as one string in UTF-8.

    Raises IllegalMessage if a name is empty, or if a name or value is not a str, contains a separator, or contains half a
    surrogate pair.
    """
    try:
        return _PROPERTY.join([_pair(name, value) for name, value in properties.items()]).encode()
    except (TypeError, UnicodeEncodeError):
        raise IllegalMessage(_why_not_text(properties)) from None


def decode(encoded: bytes) -> dict[str, str]:
    """Returns all properties. Skips pairs without a name or value, as RocketMQ does."""
    properties: dict[str, str] = {}
    for pair in encoded.decode(errors="replace").split(_PROPERTY):
        name, separator, value = pair.partition(_NAME_VALUE)
        if name and separator and value:
            properties[name] = value
    return properties


def find(encoded: bytes, name: str) -> str | None:
    """Returns the value of one property, or None."""
    pattern = _pattern(name)
    _, found, rest = encoded.rpartition(pattern)
    if not found:
        if not encoded.startswith(pattern[1:]):
            return None
        rest = encoded[len(pattern) - 1 :]
    value = rest.partition(_PAIR_END)[0]
    if not value:
        span = _last_span(encoded, pattern)
        if span is None:
            return None
        value = encoded[span[0] + len(pattern) - 1 : span[1]]
    return value.decode("utf-8", "replace")


def put(encoded: bytes, name: str, value: str) -> bytes:
    """Returns the properties with one property set. An existing property keeps its position."""
    pair = _pair(name, value).encode()
    span = _last_span(encoded, _pattern(name))
    if span is not None:
        start, end = span
        return encoded[:start] + pair + encoded[end:]
    if not encoded or encoded.endswith(_PAIR_END):
        return encoded + pair
    return encoded + _PAIR_END + pair


def put_if_it_fits(encoded: bytes, name: str, value: str) -> bytes:
    """Returns the properties with one property set. Returns them unchanged if the result would be too long."""
    longer = put(encoded, name, value)
    return longer if len(longer) <= MAX_PROPERTIES_LENGTH else encoded


def remove(encoded: bytes, names: Iterable[str]) -> bytes:
    """Returns the properties without the pairs that have these names."""
    for name in names:
        pattern = name.encode() + _NAME_END
        if pattern in encoded:
            encoded = _PAIR_END.join(pair for pair in encoded.split(_PAIR_END) if not pair.startswith(pattern))
    return encoded


def _why_not_text(properties: Mapping[Any, Any]) -> str:
    for name, value in properties.items():
        for part, what in ((name, f"the name of property {name!r}"), (value, f"property {name!r}")):
            if not isinstance(part, str):
                return f"{what} must be a str, not {kind_of(part)}"
    return "a property cannot be encoded in UTF-8: it contains an unpaired surrogate"


def _pair(name: str, value: str) -> str:
    if not name:
        raise IllegalMessage("a property name must not be empty")
    if _NAME_VALUE in name or _PROPERTY in name or _NAME_VALUE in value or _PROPERTY in value:
        raise IllegalMessage(f"property {name!r}: name and value must not contain \\x01 or \\x02")
    return name + _NAME_VALUE + value


def _last_span(encoded: bytes, pattern: bytes) -> tuple[int, int] | None:
    """Returns the start and end of the last pair that has a value.

    `pattern` is the start of a pair, including the separator before it.
    """
    end = len(encoded)
    while True:
        start = encoded.rfind(pattern, 0, end) + 1
        if start == 0 and not encoded.startswith(pattern[1:], 0, end):
            return None
        value_end = encoded.find(_PAIR_END, start)
        value_end = len(encoded) if value_end < 0 else value_end
        if value_end > start + len(pattern) - 1:
            return start, value_end
        if start == 0:
            return None
        end = start


def _pattern(name: str) -> bytes:
    pattern = _patterns.get(name)
    if pattern is None:
        pattern = _PAIR_END + name.encode() + _NAME_END
        # Clients choose the names' number and length.
        if len(name) <= _MAX_REMEMBERED_LENGTH and len(_patterns) < _MAX_REMEMBERED:
            _patterns[name] = pattern
    return pattern
