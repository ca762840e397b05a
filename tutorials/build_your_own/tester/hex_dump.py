"""Formats bytes as lines of text: frames and records by field, and other bytes in rows of sixteen."""

import re
from collections.abc import Iterator
from typing import Final

from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.layout import Record, read_record

_ROW: Final = 16
_HALF_ROW: Final = 8
_COLUMN: Final = 3 * _ROW + 2
_MAX_ROWS: Final = 12
_TEXT_WIDTH: Final = 88


def hex_lines(data: bytes) -> Iterator[str]:
    """Yields rows of sixteen bytes with their printable ASCII characters. Omits the middle of long data."""
    rows = [data[at : at + _ROW] for at in range(0, len(data), _ROW)]
    for number, row in enumerate(rows[:_MAX_ROWS]):
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{number * _ROW:>6}  {row.hex(' '):<{_COLUMN}}{text}"
    if len(rows) > _MAX_ROWS:
        yield f"        … {len(data) - _MAX_ROWS * _ROW} more bytes"


def frame_lines(data: bytes) -> Iterator[str]:
    """Yields the lines of a frame: LENGTH, SERIALIZETYPE, HEADERLENGTH, the header's text and the body."""
    if not _is_frame(data):
        yield from hex_lines(data)
        return
    header_length = int.from_bytes(data[5:8])
    header, body = data[8 : 8 + header_length], data[8 + header_length :]
    yield f"{data[:4].hex(' '):<14}LENGTH: {len(data) - 4} bytes follow"
    yield f"{data[4:5].hex(' '):<14}SERIALIZETYPE: {'JSON' if data[4] == 0 else data[4]}"
    yield f"{data[5:8].hex(' '):<14}HEADERLENGTH: {header_length}"
    for number, line in enumerate(_wrapped(header.decode(errors="backslashreplace"))):
        yield f"{_beginning(header) if number == 0 else '':<14}{line}"
    if body:
        yield f"{_beginning(body):<14}body, {len(body)} bytes{', which begin with this record' if _is_record(body) else ''}"
        yield from record_lines(read_record(body, 0, "the body")) if _is_record(body) else hex_lines(body)


def record_lines(record: Record) -> Iterator[str]:
    """Yields a line for each field of a record."""
    for field in record.fields:
        shown = field.data[:_HALF_ROW].hex(" ") + (" …" if len(field.data) > _HALF_ROW else "")
        yield f"{field.at:>5}  {shown:<{3 * _HALF_ROW + 4}}{field.name}{_meaning(field.name, field.data)}"


def _meaning(name: str, data: bytes) -> str:
    if name in ("body", "topic"):
        return f': "{data.decode(errors="backslashreplace")}"'
    if name == "properties":
        return ": " + data.decode(errors="backslashreplace").replace("\x01", "=").replace("\x02", ", ")
    if name in ("BORNHOST", "STOREHOST"):
        return f": {'.'.join(map(str, data[:4]))}:{int.from_bytes(data[4:])}"
    return "" if name in ("MAGICCODE", "BODYCRC") else f": {int.from_bytes(data, signed=True)}"


def _wrapped(text: str) -> Iterator[str]:
    """Yields JSON text in several lines. Each line ends after a comma if possible."""
    line = ""
    for part in re.split(r"(?<=,)", text):
        if line and len(line) + len(part) > _TEXT_WIDTH:
            yield line
            line = ""
        line += part.lstrip() if not line else part
        while len(line) > _TEXT_WIDTH:
            yield line[:_TEXT_WIDTH]
            line = line[_TEXT_WIDTH:]
    if line:
        yield line


def _beginning(data: bytes) -> str:
    return data[:4].hex(" ") + (" …" if len(data) > 4 else "")


def _is_record(data: bytes) -> bool:
    try:
        return read_record(data, 0, "the body").size > 0
    except Failed:
        return False


def _is_frame(data: bytes) -> bool:
    return len(data) >= 8 and int.from_bytes(data[:4]) + 4 == len(data) and 8 + int.from_bytes(data[5:8]) <= len(data)
