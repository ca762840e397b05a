"""Formats a message body. Adds line breaks to JSON, leaves other text unchanged, and shows other bytes in hex."""

import base64
import json
import re
from typing import Final, NamedTuple

_MAX_JSON_LENGTH: Final = 64 * 1024
"""The maximum length of JSON that is shown with line breaks, in characters."""
_MAX_TEXT_LENGTH: Final = 64 * 1024
_BYTES_ON_A_LINE: Final = 16
_MAX_HEX_BYTES: Final = 1024
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class ShownBody(NamedTuple):
    """A message body, formatted as one or more lines of text."""

    kind: str
    """The kind of the text: `JSON`, `text` or `hex`."""
    text: str


def shown_body(text: str | None, in_base64: str) -> ShownBody:
    """Returns the formatted body. `text` is None for a body that is not UTF-8 text."""
    if text is None:
        return ShownBody("hex", _hex(base64.b64decode(in_base64)))
    if is_json(text):
        return ShownBody("JSON", _indented(text))
    cut = f"\n({len(text) - _MAX_TEXT_LENGTH:,} more characters)" if len(text) > _MAX_TEXT_LENGTH else ""
    return ShownBody("text", text[:_MAX_TEXT_LENGTH] + cut)


def is_json(text: str) -> bool:
    """Returns whether the text is a JSON object or array short enough to be shown with line breaks."""
    if len(text) > _MAX_JSON_LENGTH or not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _indented(text: str) -> str:
    """Adds line breaks between the tokens.

    The tokens do not change. Numbers keep their digits, and duplicate names are kept.
    """
    depth, parts = 0, [""]
    tokens = _TOKENS.findall(text)
    for index, token in enumerate(tokens):
        is_empty = token in "{[" and tokens[index + 1] in "}]"
        if token in "{[":
            depth += 1
            parts.append(token if is_empty else token + _line(depth))
        elif token in "}]":
            depth -= 1
            parts.append(token if tokens[index - 1] in "{[" else _line(depth) + token)
        elif token == ",":
            parts.append(token + _line(depth))
        else:
            parts.append(": " if token == ":" else token)
    return "".join(parts)


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, 32)


def readable(data: bytes) -> str:
    """Returns the bytes as ASCII characters, with a dot for each other byte."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in data)


def _hex(data: bytes) -> str:
    lines = []
    for position in range(0, min(len(data), _MAX_HEX_BYTES), _BYTES_ON_A_LINE):
        line = data[position : position + _BYTES_ON_A_LINE]
        lines.append(f"{position:04x}  {line.hex(' '):<47}  {readable(line)}")
    if len(data) > _MAX_HEX_BYTES:
        lines.append(f"({len(data) - _MAX_HEX_BYTES:,} more bytes)")
    return "\n".join(lines)
