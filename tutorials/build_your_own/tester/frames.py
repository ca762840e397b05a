"""Encodes and decodes frames byte by byte, so that an error message can show the wrong bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tutorials.build_your_own.tester.failed import Failed

RESPONSE_FLAG: Final = 1
ONEWAY_FLAG: Final = 2
MAX_FRAME_LENGTH: Final = 16 * 1024 * 1024
CODES: Final[Mapping[str, int]] = {
    "SEND_MESSAGE": 10,
    "PULL_MESSAGE": 11,
    "HEART_BEAT": 34,
    "END_TRANSACTION": 37,
    "CHECK_TRANSACTION_STATE": 39,
}
ANSWERS: Final[Mapping[int, str]] = {
    0: "SUCCESS",
    1: "SYSTEM_ERROR",
    2: "SYSTEM_BUSY",
    3: "REQUEST_CODE_NOT_SUPPORTED",
    13: "MESSAGE_ILLEGAL",
    14: "SERVICE_NOT_AVAILABLE",
    16: "NO_PERMISSION",
    17: "TOPIC_NOT_EXIST",
    19: "PULL_NOT_FOUND",
    20: "PULL_RETRY_IMMEDIATELY",
    21: "PULL_OFFSET_MOVED",
}
_NAMES: Final = {code: name for name, code in CODES.items()}


def request_name(code: int) -> str:
    """Returns a request code with its name."""
    return f"{_NAMES[code]} ({code})" if code in _NAMES else f"request code {code}"


def answer_name(code: int) -> str:
    """Returns a response code with its name."""
    return f"{code} ({ANSWERS[code]})" if code in ANSWERS else str(code)


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame from the broker: a response or a request."""

    data: bytes
    """The bytes of the complete frame, including LENGTH."""
    code: int
    opaque: int
    flag: int
    remark: str
    fields: Mapping[str, str]
    body: bytes

    @property
    def is_answer(self) -> bool:
        """True if the flag marks the frame as a response."""
        return self.flag & RESPONSE_FLAG != 0

    def field(self, name: str) -> str:
        """Returns a value of extFields. Raises Failed if extFields does not have it."""
        if name not in self.fields:
            raise Failed(f"{name} among the extFields of the header", f"extFields {json.dumps(dict(self.fields))}")
        return self.fields[name]

    def number(self, name: str) -> int:
        """Returns a value of extFields as an integer. Raises Failed if it is missing or not a number."""
        text = self.field(name)
        if not text.removeprefix("-").isdecimal():
            raise Failed(f"an integer in the field {name}", f'"{text}"')
        return int(text)


def encode_request(code: int, opaque: int, fields: Mapping[str, str], body: bytes = b"", *, oneway: bool = False) -> bytes:
    """Encodes a request as a frame, with the same JSON header as a Java client."""
    header = {
        "code": code,
        "extFields": dict(fields),
        "flag": ONEWAY_FLAG if oneway else 0,
        "language": "OTHER",
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": 407,
    }
    text = json.dumps({name: value for name, value in header.items() if value != {}}, separators=(",", ":")).encode()
    return (4 + len(text) + len(body)).to_bytes(4) + bytes([0]) + len(text).to_bytes(3) + text + body


def frame_length(data: bytes) -> int:
    """Returns the length in bytes of the frame at the beginning of `data`, including LENGTH. Raises Failed if it is invalid."""
    length = int.from_bytes(data[:4], signed=True)
    if not 4 <= length <= MAX_FRAME_LENGTH:
        raise Failed(
            "a frame that begins with LENGTH: 4 bytes, big-endian, the number of bytes that follow",
            f"{data[:4].hex(' ')}, a LENGTH of {length}",
            hint="Did your broker write LENGTH in little-endian order, or print text to the socket without a LENGTH?",
        )
    return 4 + length


def decode_frame(data: bytes) -> Frame:
    """Decodes a complete frame. Raises Failed, with the name of the wrong part, for an invalid frame."""
    header_length = int.from_bytes(data[5:8])
    if data[4] != 0:
        raise Failed("SERIALIZETYPE 0 (JSON), as in the request", f"{data[4]}: {_beginning(data)}")
    if 8 + header_length > len(data):
        raise Failed(
            f"a HEADERLENGTH of at most {len(data) - 8}, because LENGTH is {len(data) - 4}",
            f"{header_length}: {_beginning(data)}",
        )
    text = data[8 : 8 + header_length]
    try:
        header = json.loads(text)
        fields = {str(name): value for name, value in (header.get("extFields") or {}).items()}
        code, opaque, flag = (header[name] for name in ("code", "opaque", "flag"))
    except (ValueError, AttributeError, RecursionError) as error:
        raise Failed("a header that is a JSON object", f"{_text(text)} ({error})") from None
    except KeyError as error:
        raise Failed(f"a header with the field {error}", _text(text)) from None
    if not_text := [name for name, value in fields.items() if not isinstance(value, str)]:
        raise Failed("extFields with string values only, also for numbers", f"{not_text[0]} is {fields[not_text[0]]!r}")
    if any(not isinstance(number, int) for number in (code, opaque, flag)):
        raise Failed("a header with the integers code, opaque and flag", _text(text))
    return Frame(data, code, opaque, flag, str(header.get("remark") or ""), fields, data[8 + header_length :])


def _beginning(data: bytes) -> str:
    return f"the frame begins with {data[:8].hex(' ')}"


def _text(data: bytes) -> str:
    return data[:400].decode(errors="backslashreplace")
