"""Checks numbers in strings that come from other programs, and formats numbers of things."""

from typing import Final

_MAX_DIGITS: Final = 19
"""The number of digits of the largest 64-bit number. `int` would be slow, or fail, for a string with thousands of digits."""


def is_number(text: str) -> bool:
    """Returns whether the string is a number of at most 19 ASCII digits."""
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS


def counted(count: int | str, noun: str) -> str:
    """Returns the count with the noun in its singular or plural form, for example `1 message` or `2 messages`."""
    return f"{count} {noun}" if str(count) == "1" else f"{count} {noun}s"
