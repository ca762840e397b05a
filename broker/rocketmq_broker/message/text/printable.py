"""Escapes unprintable and invisible characters in untrusted text, for screens and logs."""

import re
from typing import Final

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SHAPELESS: Final = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U0001d173-\U0001d17a"
    "\U000e0100-\U000e01ef"
)
"""A regular expression class of invisible characters that Unicode classifies as letters, marks or symbols."""
_WITHOUT_SHAPE: Final = re.compile(f"[{_SHAPELESS}]")
_NEEDS_A_LOOK: Final = re.compile(f"^ | $|  |[\\\\{_SHAPELESS}]")
_UNSEEN_IN_JSON: Final = re.compile(r"[^\n -~]+")


def printable(text: str, longest: int | None = None) -> str:
    """Returns the text with each unprintable character replaced by an escape sequence such as `\\n`, `\\x1b` or `\\u202e`.

    Such characters could start a new line, control a terminal, change the writing direction, or fail to be encoded. If the text
    has more than `longest` characters, it is truncated, and the number of omitted characters is appended.
    """
    if longest is not None and len(text) > longest:
        return f"{printable(text[:longest])}... ({len(text) - longest} more characters)"
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def visible_name(name: str) -> str:
    """Returns a name with invisible characters escaped too, so that two different names never look the same.

    Escapes letters without a visible shape, such as variation selectors. Escapes spaces at the start, at the end and after
    another space. Doubles backslashes.
    """
    if name.isprintable() and not _NEEDS_A_LOOK.search(name):
        return name
    last = len(name.rstrip(" "))
    shown = []
    for place, character in enumerate(name):
        is_hidden_blank = character == " " and (place >= last or name[place - 1 : place] in ("", " "))
        if character == "\\":
            shown.append("\\\\")
        elif is_hidden_blank or not character.isprintable() or _WITHOUT_SHAPE.match(character):
            shown.append(_escape(character))
        else:
            shown.append(character)
    return "".join(shown)


def visible_json(text: str) -> str:
    """Returns the JSON text with each invisible character escaped. The text decodes to the same value."""
    return _UNSEEN_IN_JSON.sub(lambda found: "".join(_json_escape(character) for character in found[0]), text)


def _json_escape(character: str) -> str:
    if character.isprintable() and not _WITHOUT_SHAPE.match(character):
        return character
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
