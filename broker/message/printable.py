"""Text of others on our screens and in our logs."""

from __future__ import annotations

from typing import Final

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, longest: int | None = None) -> str:
    """The text with an escape, such as `\\n`, `\\x1b` or `\\u202e`, for each character that is not printed as itself.

    These begin a new line, tell a terminal to do something, turn the direction of writing, or cannot be encoded. With `longest`
    the rest of a longer text is left out, and the end says how much that is.
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
