"""Text from others on our screens and in our logs."""

from __future__ import annotations

import re
from typing import Final

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SHAPELESS: Final = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U0001d173-\U0001d17a"
    "\U000e0100-\U000e01ef"
)
"""Characters that Unicode calls letters, marks or symbols, and that are invisible."""
_WITHOUT_SHAPE: Final = re.compile(f"[{_SHAPELESS}]")
_NEEDS_A_LOOK: Final = re.compile(f"^ | $|  |[\\\\{_SHAPELESS}]")
_UNSEEN_IN_JSON: Final = re.compile(r"[^\n -~]+")


def printable(text: str, longest: int | None = None) -> str:
    """Returns the text with an escape, such as `\\n`, `\\x1b` or `\\u202e`, for each character that is not printable.

    Such a character begins a new line, controls a terminal, changes the direction of writing, or cannot be encoded. `longest`
    cuts a longer text, and the end tells how many characters are missing.
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
    """Returns a name in a form that shows its difference from every other name: invisible characters are escaped too.

    These are a blank at the start, at the end or after another one, and letters without a shape, such as a variation selector.
    A backslash is doubled, so that two different names never look the same.
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
    """Returns JSON text of equal meaning with each invisible character written as its escape."""
    return _UNSEEN_IN_JSON.sub(lambda found: "".join(_json_escape(character) for character in found[0]), text)


def _json_escape(character: str) -> str:
    if character.isprintable() and not _WITHOUT_SHAPE.match(character):
        return character
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
